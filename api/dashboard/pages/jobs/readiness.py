"""Requirements of a project's agent jobs that are not met, and the settings of these jobs."""

from dataclasses import dataclass
from pathlib import Path

from agent.coding_agent import runner
from agent.coding_agent.presets import COMMAND, find_preset
from agent.errors import NotConfigured
from agent.jobs import configuration
from agent.jobs.configuration import Configuration
from api.dashboard.web import locale
from api.dashboard.web.visit import ProjectVisit

_SECRETS = {"git_token": "Git token", "model_key": "Model key", "webhook_secret": "Webhook secret"}
"""Settings whose values are not shown, because they lead to secrets."""
_URLS = {"api_base": "Forge API", "model_base": "Model server", "webhook": "Webhook"}
"""Settings whose values are not shown, because they name other hosts."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A requirement that is not met, and the command with which the operator meets it."""

    detail: str
    command: str


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting as the page shows it, with the option of `readership project agent` that changes it."""

    name: str
    value: str
    option: str


@dataclass(frozen=True, slots=True)
class Readiness:
    """Settings of the project's jobs. `missing` is None if a job can start."""

    missing: Missing | None
    settings: list[Setting]
    command: str
    publishes_prompts: bool = True


def readiness(visit: ProjectVisit) -> Readiness:
    """Return the settings of the project's jobs, with the first requirement that is not met."""
    command = f"{visit.state.settings.command} project agent {visit.project.id}"
    try:
        with visit.state.control.connect() as connection:
            config = configuration.load(connection, visit.project.id)
    except NotConfigured:
        return Readiness(_no_repository(command), [], command)
    return Readiness(_missing(visit, config, command), _settings(config), command, config.publish_prompts)


def _no_repository(command: str) -> Missing:
    return Missing(
        "This project has no repository and no coding agent yet. Set both on the command line of the server.",
        f"{command} \\\n"
        "  --repository https://github.com/YOU/SITE --ref main --git-token file:/etc/readership/git-token \\\n"
        "  --preset opencode --model MODEL --model-key file:/etc/readership/model-key",
    )


def _missing(visit: ProjectVisit, config: Configuration, command: str) -> Missing | None:
    if config.preset != COMMAND and not config.model:
        return Missing(
            f"No model is set for {config.preset}, the coding agent of this project.", f"{command} --model MODEL"
        )
    program = find_preset(config.preset, config.command).program
    # If this server runs no jobs, workers on other machines do, and it is not known which programs these have.
    if visit.state.settings.jobs_at_once and not runner.is_installed(program, tuple(map(Path, config.readable))):
        return Missing(
            f"The coding agent {program} is not installed on this machine. Install it for all users, or set the folder"
            " that contains it.",
            f"{command} --readable FOLDER",
        )
    return None


def _settings(config: Configuration) -> list[Setting]:
    """Return the settings. Of those in `_SECRETS` and `_URLS`, the page shows only whether they are set."""
    shown = [
        ("Repository", config.repository, "--repository"),
        ("Branch", config.ref, "--ref"),
        ("Forge", config.forge, "--host"),
        ("Coding agent", config.preset, "--preset"),
        ("Model", config.model or "none", "--model"),
        ("Time limit of a turn", locale.duration(config.time_limit_s), "--time-limit-s"),
        ("Sandbox", "on" if config.is_sandboxed else "off", "--sandbox"),
        ("Prompts in pull requests", "quoted" if config.publish_prompts else "not quoted", "--publish-prompts"),
        ("Changes of CI configuration", "pushed" if config.allow_ci else "refused", "--allow-ci"),
    ]
    hidden = [
        (name, "set" if getattr(config, field) else "not set", f"--{field.replace('_', '-')}")
        for field, name in (_SECRETS | _URLS).items()
    ]
    return [Setting(*each) for each in (*shown, *hidden)]
