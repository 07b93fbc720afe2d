"""The coding agents that need no more than their name: how each is started, continued and believed.

Nothing is written into the home: an agent that ran before could have put a link there. What an agent must read is in
its arguments, its environment or a read-only folder. Each reads its prompt from standard input, or from a file. What
of an agent's own protections stands in the way of a box around it is off: the box is what protects.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from agent.coding_agent.output import EventReader, read_claude, read_codex, read_mini, read_opencode
from agent.errors import TurnFailed

DUMMY_KEY = "the-gateway-knows-it"
OPENAI = "https://api.openai.com/v1"
ANTHROPIC = "https://api.anthropic.com"


@dataclass(frozen=True, slots=True)
class Ask:
    """One turn as an agent is told of it, with the paths that it sees. `session`: the one to go on with."""

    model: str
    base_url: str
    prompt: str
    session: str | None
    home: str
    run: str


@dataclass(frozen=True, slots=True)
class Start:
    """`files` are put into the folder `run`, by name."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Preset:
    """`program` must be installed. `read` tells from its output how the turn went."""

    program: str
    start: Callable[[Ask], Start]
    read: EventReader | None
    """None: its status alone does."""
    upstream: str | None = OPENAI
    """Where its requests go if the project says nothing; None: nowhere."""
    key_header: str = "authorization"
    """Name of the request header that carries the model key."""
    has_sessions: bool = True


def _claude(ask: Ask) -> Start:
    """https://docs.claude.com/en/docs/claude-code/headless; written from there and never tried: it is not free."""
    return Start(
        argv=(
            *("claude", "--print", "--verbose", "--output-format", "stream-json", "--dangerously-skip-permissions"),
            *("--model", ask.model),
            *(("--resume", ask.session) if ask.session else ()),
        ),
        env={
            "ANTHROPIC_BASE_URL": ask.base_url,
            "ANTHROPIC_API_KEY": DUMMY_KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        },
    )


def _codex(ask: Ask) -> Start:
    """https://developers.openai.com/codex/noninteractive; tried with 0.169, which speaks the Responses API alone."""
    provider = {"name": "gateway", "base_url": ask.base_url, "env_key": "GATEWAY_KEY", "wire_api": "responses"}
    settings = {f"model_providers.gateway.{name}": value for name, value in provider.items()}
    settings |= {"model_provider": "gateway", "web_search": "disabled"}
    return Start(
        argv=(
            *("codex", "exec", *(("resume",) if ask.session else ())),
            *("--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--model", ask.model),
            *(word for name, value in settings.items() for word in ("--config", f"{name}={json.dumps(value)}")),
            *((ask.session,) if ask.session else ()),
            "-",
        ),
        env={"GATEWAY_KEY": DUMMY_KEY},
    )


def _opencode(ask: Ask) -> Start:
    """https://opencode.ai/docs/config; tried with 1.18. The inline configuration wins over one in the repository."""
    options = {"baseURL": ask.base_url, "apiKey": DUMMY_KEY}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {ask.model: {"name": ask.model}}}
    model = f"gateway/{ask.model}"
    config = {
        "model": model,
        "small_model": model,
        "provider": {"gateway": provider},
        "enabled_providers": ["gateway"],
        "permission": "allow",
        "share": "disabled",
        "autoupdate": False,
        "snapshot": False,
    }
    return Start(
        argv=(
            *("opencode", "run", "--format", "json", "--auto", "--model", model),
            *(("--session", ask.session) if ask.session else ()),
        ),
        env={
            "OPENCODE_CONFIG_CONTENT": json.dumps(config),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
        },
    )


def _mini_swe_agent(ask: Ask) -> Start:
    """https://mini-swe-agent.com; tried with 2.4.6. What tells how it went is a file: the shell prints it last."""
    config = {
        "run": {"task": ask.prompt},
        "model": {
            "model_name": f"openai/{ask.model}",
            "model_kwargs": {"api_base": ask.base_url, "api_key": DUMMY_KEY, "drop_params": True},
            "cost_tracking": "ignore_errors",
        },
        "agent": {"cost_limit": 0},
    }
    record = f"{ask.home}/.mini-swe-agent.traj.json"
    script = 'rm -f "$0"; "$@"; status=$?; echo; [ -f "$0" ] && tr -d "\\n" < "$0"; echo; exit $status'
    return Start(
        argv=(
            *("sh", "-c", script, record, "mini", "--yolo", "--exit-immediately"),
            *("--config", "mini.yaml", "--config", f"{ask.run}/turn.yaml", "--output", record),
        ),
        env={"MSWEA_CONFIGURED": "true", "MSWEA_SILENT_STARTUP": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        files={"turn.yaml": json.dumps(config)},
    )


PRESETS: Mapping[str, Preset] = {
    "claude": Preset("claude", _claude, read_claude, upstream=ANTHROPIC, key_header="x-api-key"),
    "codex": Preset("codex", _codex, read_codex),
    "opencode": Preset("opencode", _opencode, read_opencode),
    "mini-swe-agent": Preset("mini", _mini_swe_agent, read_mini, has_sessions=False),
}
COMMAND = "command"


def preset(name: str, command: Sequence[str]) -> Preset:
    """By its name; `command` is any other program, which reads the prompt from its standard input.

    Raises:
        TurnFailed: there is no such preset, or no command.
    """
    if name == COMMAND and command:
        return Preset(command[0], lambda ask: Start(tuple(command)), read=None, upstream=None, has_sessions=False)
    if name == COMMAND:
        raise TurnFailed("the agent is `command`, and no command is set")
    if name not in PRESETS:
        raise TurnFailed(f"there is no agent {name!r}: choose one of {', '.join((*PRESETS, COMMAND))}")
    return PRESETS[name]
