"""What a project's agent jobs need to know: repository, code host, coding agent, and where the secrets are.

A secret is named, never stored: `env:NAME` or `file:/path`, looked up by the worker when it needs it.
"""

import json
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import sqlalchemy as sa

from agent.coding_agent.presets import COMMAND, PRESETS
from agent.errors import InvalidConfiguration, NotConfigured
from agent.forge.forges import CODE_HOSTS, Forge
from agent.git.remote import USERNAME, Remote
from agent.jobs import secret_ref
from warehouse.control import projects
from warehouse.control.database import METADATA, transaction

HOSTS = tuple(CODE_HOSTS)
ASKING = tuple(name for name, row in CODE_HOSTS.items() if row.needs_user)
AGENTS = (*PRESETS, COMMAND)
SHOWN = ("/usr", "/bin", "/lib")
"""What every coding agent may read."""
TIME_LIMIT_S_MAX = 24 * 3600
_EXAMPLE = "https://git.example/x"

CONFIGURATIONS = sa.Table(
    "agent_configurations",
    METADATA,
    sa.Column("project_id", sa.ForeignKey(projects.PROJECTS.c.id, ondelete="CASCADE"), primary_key=True),
    sa.Column("content", sa.JSON, nullable=False),
)


@dataclass(frozen=True, slots=True)
class Configuration:
    """One project's. Optional texts are empty where they are not set."""

    repository: str  # http or https URL of the repository, without user or password
    ref: str = "main"  # branch that a job starts from, and that its pull request is for
    host: Forge = "github"  # one of HOSTS
    api_base: str = ""  # of the code host; empty: told by the repository's URL
    git_token: str = ""  # where it is: env:NAME or file:/path
    git_user: str = ""  # whose it is, for a code host that asks; empty: any name will do
    preset: str = "opencode"  # one of AGENTS: the coding agent
    command: tuple[str, ...] = ()  # argv of the preset `command`; the prompt comes on standard input
    model: str = ""  # the model's name, as the coding agent takes it
    model_base: str = ""  # base URL of the model server; empty: the preset's own
    model_key: str = ""  # where it is: env:NAME or file:/path
    time_limit_s: int = 3600  # of one turn's coding agent
    readable: tuple[str, ...] = ()  # more folders that the coding agent may read, such as where it is installed
    is_sandboxed: bool = True  # false runs the coding agent as the service's own user, with all that it may do
    webhook: str = ""  # URL that is told when a job leaves active
    webhook_secret: str = ""  # where it is: env:NAME or file:/path


def changed(configuration: Configuration, given: dict[str, Any]) -> Configuration:
    """With the given fields, checked. Where the repository moves to another host, its API base is told by it again.

    Raises:
        InvalidConfiguration: naming each field that is not of its form, or the token if it was set for another host.
    """
    made = Configuration(**{**asdict(configuration), **given})
    before, now = _host_of(configuration.repository), _host_of(made.repository)
    if before and before != now:
        made = replace(made, api_base=given.get("api_base", ""))
    faults = [f"{name}: {told}" for name, is_good, told in _checks(made) if not is_good]
    if before and before != now and made.git_token and "git_token" not in given:
        faults.append(f"git_token: name one for {now}; the one that is set is for {before}")
    if faults:
        raise InvalidConfiguration("; ".join(faults))
    return made


def _checks(made: Configuration) -> list[tuple[str, bool, str]]:
    secrets = [(name, _is_named(getattr(made, name))) for name in ("git_token", "model_key", "webhook_secret")]
    return [
        ("repository", _is_remote(made.repository, "main"), "an http or https URL without user, password and query"),
        ("ref", _is_remote(_EXAMPLE, made.ref), "the name of a branch"),
        ("host", made.host in HOSTS, f"one of {', '.join(HOSTS)}"),
        (
            "git_user",
            bool(made.git_user) or made.host not in ASKING,
            f"the user whose token it is, needed by {', '.join(ASKING)}",
        ),
        ("git_user", _is_remote(_EXAMPLE, "main", made.git_user or USERNAME), "letters, digits, dots, _ and -"),
        ("api_base", not made.api_base or _is_url(made.api_base), "an http or https URL without user and password"),
        ("preset", made.preset in AGENTS, f"one of {', '.join(AGENTS)}"),
        (
            "command",
            bool(made.command) == (made.preset == COMMAND),
            "needed by the preset `command`, and by it alone",
        ),
        (
            "model_base",
            not made.model_base or _is_url(made.model_base),
            "an http or https URL without user and password",
        ),
        ("time_limit_s", 1 <= made.time_limit_s <= TIME_LIMIT_S_MAX, f"1 to {TIME_LIMIT_S_MAX} seconds"),
        ("readable", all(each.startswith("/") for each in made.readable), "absolute paths"),
        ("webhook", not made.webhook or _is_url(made.webhook), "an http or https URL without user and password"),
        ("webhook_secret", bool(made.webhook) == bool(made.webhook_secret), "goes together with webhook"),
        *((name, is_good, "env:NAME or file:/path, never the secret itself") for name, is_good in secrets),
        *((name, not _is_shown(made, name), "a file that the coding agent may not read") for name, _ in secrets),
    ]


def _is_named(reference: str) -> bool:
    try:
        return not reference or secret_ref.check(reference) == reference
    except InvalidConfiguration:
        return False


def _is_shown(made: Configuration, name: str) -> bool:
    """Whether the file of a secret is in a folder that the sandbox shows."""
    path = Path(getattr(made, name).removeprefix("file:"))
    return path.is_absolute() and any(path.is_relative_to(folder) for folder in (*SHOWN, *made.readable))


def _is_remote(url: str, ref: str, user: str = USERNAME) -> bool:
    try:
        Remote(url, ref, None, user)
    except InvalidConfiguration:
        return False
    return True


def _host_of(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].lower()


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    plain = text.isascii() and text.isprintable() and " " not in text
    return (
        plain
        and parts.scheme in ("http", "https")
        and bool(parts.hostname)
        and "@" not in parts.netloc
        and not parts.query
        and not parts.fragment
    )


def of(connection: sa.Connection, project: str) -> Configuration:
    """A project's.

    Raises:
        NotConfigured: it has none.
    """
    query = sa.select(CONFIGURATIONS.c.content).where(CONFIGURATIONS.c.project_id == project)
    content = connection.execute(query).scalar_one_or_none()
    if content is None:
        raise NotConfigured(
            f"project {project!r} has no repository: the operator sets one with "
            f"`readership project agent {project} --repository URL`"
        )
    known = {each.name for each in fields(Configuration)}
    return Configuration(**{name: _read(value) for name, value in content.items() if name in known})


def ready(connection: sa.Connection, project: str) -> Configuration:
    """A project's, if a job can be begun with it.

    Raises:
        NotConfigured: it has none, or the coding agent needs a model that is not named.
    """
    chosen = of(connection, project)
    if chosen.preset != COMMAND and not chosen.model:
        raise NotConfigured(
            f"project {project!r} names no model for {chosen.preset}: the operator sets it with "
            f"`readership project agent {project} --model NAME`"
        )
    return chosen


def _read(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def store(engine: sa.Engine, project: str, configuration: Configuration) -> None:
    """Set a project's; jobs that exist keep the repository, ref and model that they began with.

    Raises:
        ProjectNotFound: there is no such project.
    """
    projects.find(engine, project)
    content = json.loads(json.dumps(asdict(configuration)))
    with transaction(engine) as connection:
        connection.execute(CONFIGURATIONS.delete().where(CONFIGURATIONS.c.project_id == project))
        connection.execute(CONFIGURATIONS.insert().values(project_id=project, content=content))
