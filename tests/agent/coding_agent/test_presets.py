"""The known coding agents: their command line, environment and output format."""

import subprocess
import sys

import pytest

from agent.coding_agent.output import Output, Record
from agent.coding_agent.presets import PRESETS, TurnInput, find_preset
from agent.errors import TurnFailed

TURN = TurnInput("m", "http://127.0.0.1:1", "the-token", "Do it.", "the-session", "/home/agent", "/run/agent")


@pytest.mark.parametrize("name", PRESETS)
def test_agent_gets_the_gateway_the_model_the_token_and_the_session_if_it_has_sessions(name: str) -> None:
    agent = find_preset(name, ())
    line = agent.command_line(TURN)
    settings = " ".join([*line.argv, *line.env.values(), *line.files.values()])
    assert all(each in settings for each in (TURN.base_url, TURN.model, TURN.key))
    assert TURN.key not in " ".join(line.argv), "other users can read the arguments"
    assert ("the-session" in line.argv) == agent.has_sessions == (name != "mini-swe-agent")


def test_preset_command_runs_its_program_and_reports_the_last_line() -> None:
    agent = find_preset("command", ["my-agent", "--flag"])
    assert agent.command_line(TURN).argv == ("my-agent", "--flag")
    assert (agent.program, agent.upstream, agent.has_sessions) == ("my-agent", None, False)
    output = Output(agent.parse)
    output.add("stdout", b"Working.\nDone.\n")
    assert output.record == Record(summary="Done.")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("command", "no command is set"),
        ("emacs", "no coding agent 'emacs': choose one of claude, codex, opencode, mini-swe-agent, command"),
    ],
)
def test_unknown_preset_and_missing_command_fail_the_turn(name: str, reason: str) -> None:
    with pytest.raises(TurnFailed, match=reason):
        find_preset(name, ())


def test_settings_of_agent_jobs_do_not_import_httpx() -> None:
    code = "import sys, agent.jobs.configuration; sys.exit('httpx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
