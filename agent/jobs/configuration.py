"""Configuration of a project's agent jobs: repository, forge, coding agent, model, and references to their secrets.

A reference to a secret is `env:NAME` or `file:/path`. The worker reads the secret when it uses it; no secret is stored.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from agent.coding_agent.presets import COMMAND, PRESETS
from agent.errors import InvalidConfiguration, NotConfigured
from agent.forge.forges import FORGES, ForgeName, default_api_base
from agent.git.remote import Remote
from agent.jobs import secret_ref
from agent.sandbox import bubblewrap
from warehouse.control import projects
from warehouse.control.database import statements
from warehouse.database.pool import Pool
from warehouse.database.statements import Connection

FORGE_NAMES = tuple(FORGES)
AGENTS = (*PRESETS, COMMAND)
SECRETS = ("git_token", "model_key", "webhook_secret")
"""Fields with references to secrets."""
TIME_LIMIT_S_MAX = 24 * 3600
_EXAMPLE = "https://git.example/x"
_URL_FORM = "an http or https URL without user and password"
_REFERENCE_FORM = "env:NAME or file:/path, not the secret itself"
_HIDDEN_FILE = "a file that the coding agent cannot read"

STATEMENTS = statements(__file__)


class Configuration(msgspec.Struct, frozen=True):
    """Configuration of one project. An optional text that is not set is empty."""

    repository: str
    """http or https URL of the repository, without user or password."""
    ref: str = "main"
    """Branch that a job starts from and that its pull request is merged into."""
    forge: ForgeName = msgspec.field(default="github", name="host")
    """Kind of forge; the command line and the stored JSON call it `host`."""
    api_base: str = ""
    """Base URL of the forge's API; empty if it follows from the repository's URL."""
    git_token: str = ""
    """Reference to the token for git and for the forge's API."""
    preset: str = "opencode"
    """Coding agent, one of AGENTS."""
    command: tuple[str, ...] = ()
    """Arguments of the preset `command`, which reads the prompt from standard input."""
    model: str = ""
    """Name of the model, in the form that the coding agent expects."""
    model_base: str = ""
    """Base URL of the model server; empty for the preset's default."""
    model_key: str = ""
    """Reference to the API key of the model server."""
    time_limit_s: int = 3600
    """Maximum duration of the coding agent in one turn, in seconds."""
    readable: tuple[str, ...] = ()
    """Additional folders that the coding agent may read, such as the one it is installed in."""
    is_sandboxed: bool = True
    """False runs the coding agent as the user of the service, with all of that user's rights."""
    allow_ci: bool = False
    """True pushes changes of files that configure CI, which the forge may run before anybody has read them."""
    publish_prompts: bool = True
    """True quotes the prompts in the pull request, its title and the commits, for all who can read the repository."""
    webhook: str = ""
    """URL that is notified when a job is no longer active."""
    webhook_secret: str = ""
    """Reference to the key that signs the webhook messages."""


Changes = Mapping[str, object]
"""New values of fields of a Configuration; an absent field keeps its value."""


def changed(configuration: Configuration, changes: Changes) -> Configuration:
    """Return the configuration with the fields of `changes` replaced.

    If the repository moves to another host, the API base follows from the new URL unless `changes` has one.

    Raises:
        InvalidConfiguration: a field is invalid, or the token or the model key was set for another host; the message
            names each field.
    """
    new = msgspec.structs.replace(configuration, **changes)
    old_host, new_host = _network_location(configuration.repository), _network_location(new.repository)
    has_moved = bool(old_host) and old_host != new_host
    if has_moved:
        new = msgspec.structs.replace(new, api_base=str(changes.get("api_base", "")))
    faults = [f"{name}: {requirement}" for name, is_valid, requirement in _checks(new) if not is_valid]
    for name, urls in _SENT_TO.items() if not faults else ():
        if name not in changes and getattr(configuration, name) and getattr(new, name):
            faults += _moves(name, urls(configuration), urls(new))
    if faults:
        raise InvalidConfiguration("; ".join(faults))
    return new


def _checks(new: Configuration) -> list[tuple[str, bool, str]]:
    """Return the name of each setting, whether it is valid, and its requirement."""
    secrets = [(name, reference) for name in SECRETS if (reference := getattr(new, name))]
    return [
        ("repository", _accepts(Remote, new.repository, "main", None), f"must be {_URL_FORM}, and no query"),
        ("ref", _accepts(Remote, _EXAMPLE, new.ref, None), "must be the name of a branch"),
        ("host", new.forge in FORGE_NAMES, f"must be one of {', '.join(FORGE_NAMES)}"),
        ("api_base", not new.api_base or _is_url(new.api_base), f"must be {_URL_FORM}"),
        ("preset", new.preset in AGENTS, f"must be one of {', '.join(AGENTS)}"),
        ("command", bool(new.command) == (new.preset == COMMAND), "must be set for the preset `command` and no other"),
        ("model_base", not new.model_base or _is_url(new.model_base), f"must be {_URL_FORM}"),
        ("time_limit_s", 1 <= new.time_limit_s <= TIME_LIMIT_S_MAX, f"must be 1 to {TIME_LIMIT_S_MAX} seconds"),
        ("readable", all(folder.startswith("/") for folder in new.readable), "must be absolute paths"),
        ("webhook", not new.webhook or _is_url(new.webhook), f"must be {_URL_FORM}"),
        ("webhook_secret", bool(new.webhook) == bool(new.webhook_secret), "must be set together with webhook"),
        *((name, _accepts(secret_ref.check, each), f"must be {_REFERENCE_FORM}") for name, each in secrets),
        *((name, False, f"must be {_HIDDEN_FILE}") for name in exposed_secrets(new)),
    ]


def _accepts(check: Callable[..., object], *values: str | None) -> bool:
    try:
        check(*values)
    except InvalidConfiguration:
        return False
    return True


def exposed_secrets(configuration: Configuration) -> list[str]:
    """Return the fields of SECRETS whose file is visible in the sandbox on this machine, under any name."""
    paths = {name: Path(getattr(configuration, name).removeprefix("file:")) for name in SECRETS}
    readable = tuple(map(Path, configuration.readable))
    return [name for name, path in paths.items() if path.is_absolute() and bubblewrap.is_visible(path, readable)]


def _network_location(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].lower()


def _moves(name: str, old_urls: Iterable[str], new_urls: Iterable[str]) -> list[str]:
    """Return a fault for each place, a scheme, host and port, to which a secret was not sent before."""
    old, new = list(dict.fromkeys(map(_place, old_urls))), dict.fromkeys(map(_place, new_urls))
    places = " and ".join(old) or "no server"
    return [f"{name}: set one for {place}; the current one is for {places}" for place in new if place not in old]


def _place(url: str) -> str:
    parts = urlsplit(url.lower())
    return f"{parts.scheme}://{parts.netloc}"


def _token_urls(configuration: Configuration) -> tuple[str, str]:
    """Return the URLs with which the token is sent: the repository's and the API's."""
    repository = configuration.repository
    return repository, configuration.api_base or default_api_base(configuration.forge, repository)


def _model_urls(configuration: Configuration) -> list[str]:
    """Return the URL of the model server, unless the coding agent has none."""
    preset = PRESETS.get(configuration.preset)
    url = configuration.model_base or (preset.upstream if preset else None)
    return [url] if url else []


_SENT_TO: Mapping[str, Callable[[Configuration], Sequence[str]]] = {"git_token": _token_urls, "model_key": _model_urls}
"""Functions that return the URLs with which a secret is sent, by its field."""


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    is_plain = text.isascii() and text.isprintable() and " " not in text
    return (
        is_plain
        and parts.scheme in ("http", "https")
        and bool(parts.hostname)
        and "@" not in parts.netloc
        and not parts.query
        and not parts.fragment
    )


def load(connection: Connection, project: str) -> Configuration:
    """Return the configuration of a project. Unknown fields, which a later version stored, are ignored.

    Raises:
        NotConfigured: the project has none, or one for a kind of forge that was removed.
    """
    row = STATEMENTS.run(connection, "CONTENT", {"project": project}).fetchone()
    if row is None:
        raise NotConfigured(
            f"project {project!r} has no repository: the operator sets one with "
            f"`readership project agent {project} --repository URL`"
        )
    try:
        return msgspec.json.decode(row[0], type=Configuration)
    except msgspec.ValidationError as error:
        raise NotConfigured(
            f"set the repository of project {project!r} again with `readership project agent`: "
            f"its settings are not supported any more ({error})"
        ) from None


def load_complete(connection: Connection, project: str) -> Configuration:
    """Return the configuration of a project. Raises NotConfigured if there is none, or its agent needs a model."""
    configuration = load(connection, project)
    if configuration.preset != COMMAND and not configuration.model:
        raise NotConfigured(
            f"project {project!r} has no model for {configuration.preset}: the operator sets it with "
            f"`readership project agent {project} --model NAME`"
        )
    return configuration


def store(control: Pool, project: str, configuration: Configuration) -> None:
    """Store the configuration. Existing jobs keep only repository, ref, agent and model. Raises ProjectNotFound."""
    with control.transaction() as connection:
        projects.lock(connection, project)
        _put(connection, project, configuration)


def change(control: Pool, project: str, changes: Changes) -> Configuration:
    """Change fields of the configuration of a project, or store its first one, and return it.

    Raises:
        ProjectNotFound: there is no such project.
        InvalidConfiguration: see `changed`.
    """
    with control.transaction() as connection:
        projects.lock(connection, project)
        try:
            before = load(connection, project)
        except NotConfigured:
            before = Configuration(repository="")
        configuration = changed(before, changes)
        _put(connection, project, configuration)
    return configuration


def remove(control: Pool, project: str) -> None:
    with control.transaction() as connection:
        STATEMENTS.run(connection, "DELETE", {"project": project})


def _put(connection: Connection, project: str, configuration: Configuration) -> None:
    """Replace the configuration of a project, which the caller has locked."""
    content = msgspec.json.encode(configuration).decode()
    STATEMENTS.run(connection, "PUT", {"project": project, "content": content})
