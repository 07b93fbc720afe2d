"""The known coding agents: their command line, environment and output format.

The service writes no file into the agent's home, because an earlier turn could have placed a link there. An agent's
settings are in its arguments, its environment or the read-only scratch folder, and its prompt is its standard input or
a file. The agents' own sandboxes and permission prompts are off, because the agents run in the service's sandbox.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from agent.coding_agent.output import (
    EventParser,
    parse_claude_event,
    parse_codex_event,
    parse_mini_event,
    parse_opencode_event,
)
from agent.errors import TurnFailed

OPENAI = "https://api.openai.com/v1"
ANTHROPIC = "https://api.anthropic.com"
CHAT = "POST /chat/completions"
MESSAGES = ("POST /v1/messages", "POST /v1/messages/count_tokens")
RESPONSES = ("POST /responses", "POST /responses/compact", "GET /models")
ANY_MODEL_CALL = (
    *(CHAT, "POST /completions", "POST /embeddings", *RESPONSES, "POST /messages", "POST /messages/count_tokens"),
    *("POST /v1/chat/completions", "POST /v1/completions", "POST /v1/embeddings", "POST /v1/responses"),
    *("POST /v1/responses/compact", "GET /v1/models", *MESSAGES),
)
"""Model calls of the APIs of OpenAI and Anthropic, for a command whose API is not known."""


@dataclass(frozen=True, slots=True)
class TurnInput:
    """Input of an agent's turn. `session` is the session to continue, or None; paths are those inside the sandbox.

    `key` is the token of the turn, which the gateway replaces by the model key. It must not be an argument, because
    without a sandbox other users of the machine can read the arguments.
    """

    model: str
    base_url: str
    key: str
    prompt: str
    session: str | None
    home: str
    run: str


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Command line of an agent. `files` are the contents of files in the scratch folder, by name."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Preset:
    """A coding agent that is configured by its name alone."""

    program: str
    command_line: Callable[[TurnInput], CommandLine]
    parse: EventParser | None
    """Parser of the events in its output; None if success depends on the exit status alone."""
    upstream: str | None = OPENAI
    """URL of the model server unless the project sets another; None for an agent without a model server."""
    requests: tuple[str, ...] = (CHAT,)
    """Method and path of each request that the agent may send to the model server."""
    key_header: str = "authorization"
    """Name of the request header that carries the model key."""
    has_sessions: bool = True


def _claude(turn: TurnInput) -> CommandLine:
    """Return the command line of Claude Code, which is not tested: it is not free software.

    https://docs.claude.com/en/docs/claude-code/headless
    """
    return CommandLine(
        argv=(
            *("claude", "--print", "--verbose", "--output-format", "stream-json", "--dangerously-skip-permissions"),
            *("--model", turn.model),
            *(("--resume", turn.session) if turn.session else ()),
        ),
        env={
            "ANTHROPIC_BASE_URL": turn.base_url,
            "ANTHROPIC_API_KEY": turn.key,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        },
    )


def _codex(turn: TurnInput) -> CommandLine:
    """Return the command line of codex. Tested with 0.169, which needs a server of the Responses API.

    https://developers.openai.com/codex/noninteractive
    """
    provider = {"name": "gateway", "base_url": turn.base_url, "env_key": "GATEWAY_KEY", "wire_api": "responses"}
    settings = {f"model_providers.gateway.{name}": value for name, value in provider.items()}
    settings |= {"model_provider": "gateway", "web_search": "disabled"}
    return CommandLine(
        argv=(
            *("codex", "exec", *(("resume",) if turn.session else ())),
            *("--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--model", turn.model),
            *(word for name, value in settings.items() for word in ("--config", f"{name}={json.dumps(value)}")),
            *((turn.session,) if turn.session else ()),
            "-",
        ),
        env={"GATEWAY_KEY": turn.key},
    )


def _opencode(turn: TurnInput) -> CommandLine:
    """Return the command line of opencode. Tested with 1.18.

    The inline configuration takes precedence over a configuration file in the repository:
    https://opencode.ai/docs/config
    """
    options = {"baseURL": turn.base_url, "apiKey": turn.key}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {turn.model: {"name": turn.model}}}
    model = f"gateway/{turn.model}"
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
    return CommandLine(
        argv=(
            *("opencode", "run", "--format", "json", "--auto", "--model", model),
            *(("--session", turn.session) if turn.session else ()),
        ),
        env={
            "OPENCODE_CONFIG_CONTENT": json.dumps(config),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
        },
    )


def _mini_swe_agent(turn: TurnInput) -> CommandLine:
    """Return the command line of mini-swe-agent. Tested with 2.4.6.

    The program writes its result to a file, and the shell script prints that file: https://mini-swe-agent.com
    """
    config = {
        "run": {"task": turn.prompt},
        "model": {
            "model_name": f"openai/{turn.model}",
            "model_kwargs": {"api_base": turn.base_url, "api_key": turn.key, "drop_params": True},
            "cost_tracking": "ignore_errors",
        },
        "agent": {"cost_limit": 0},
    }
    record = f"{turn.home}/.mini-swe-agent.traj.json"
    script = 'rm -f "$0"; "$@"; status=$?; echo; [ -f "$0" ] && tr -d "\\n" < "$0"; echo; exit $status'
    return CommandLine(
        argv=(
            *("sh", "-c", script, record, "mini", "--yolo", "--exit-immediately"),
            *("--config", "mini.yaml", "--config", f"{turn.run}/turn.yaml", "--output", record),
        ),
        env={"MSWEA_CONFIGURED": "true", "MSWEA_SILENT_STARTUP": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        files={"turn.yaml": json.dumps(config)},
    )


PRESETS: Mapping[str, Preset] = {
    "claude": Preset("claude", _claude, parse_claude_event, ANTHROPIC, MESSAGES, key_header="x-api-key"),
    "codex": Preset("codex", _codex, parse_codex_event, requests=RESPONSES),
    "opencode": Preset("opencode", _opencode, parse_opencode_event),
    "mini-swe-agent": Preset(
        "mini", _mini_swe_agent, parse_mini_event, requests=(CHAT, "POST /responses"), has_sessions=False
    ),
}
"""The presets by name. Sources of the requests: for Claude Code https://code.claude.com/docs/en/llm-gateway-protocol,
for codex https://github.com/openai/codex/tree/main/codex-rs/codex-api; LiteLLM, the library of mini-swe-agent,
sends some models' requests to /responses: https://docs.litellm.ai/docs/response_api"""
COMMAND = "command"


def find_preset(name: str, command: Sequence[str]) -> Preset:
    """Return a preset by its name. The preset `command` runs the program `command`, with the prompt as standard input.

    Raises:
        TurnFailed: there is no preset of this name, or `command` is empty.
    """
    if name == COMMAND and command:
        return Preset(
            command[0],
            lambda turn: CommandLine(tuple(command)),
            parse=None,
            upstream=None,
            requests=ANY_MODEL_CALL,
            has_sessions=False,
        )
    if name == COMMAND:
        raise TurnFailed("the coding agent is `command`, and no command is set")
    if name not in PRESETS:
        raise TurnFailed(f"there is no coding agent {name!r}: choose one of {', '.join((*PRESETS, COMMAND))}")
    return PRESETS[name]
