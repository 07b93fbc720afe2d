"""Errors and logged output of git commands."""

import time
from pathlib import Path

import pytest

from agent.errors import ForgeUnavailable, ProgramTimedOut, PushRefused, TurnFailed
from agent.git.commands import Git
from agent.git.remote import Remote

REMOTE = Remote("https://git.example/team/site.git", "main", "t0ken")


def git(folder: Path, log: list[str], limit_s: float = 60) -> Git:
    return Git(folder, REMOTE, time.monotonic() + limit_s, lambda: False, log.append)


@pytest.mark.parametrize(
    ("message", "error", "reason"),
    [
        ("fatal: Out of memory, malloc failed", TurnFailed, "git needs more than 2 GiB of memory"),
        ("fatal: write error: No space left on device", TurnFailed, "the disk is full: write error"),
        ("fatal: Authentication failed for 'https://git.example/'", TurnFailed, "is it correct"),
        ("error: RPC failed; HTTP 403 The requested URL returned error: 403", TurnFailed, "forbids it"),
        ("error: RPC failed; HTTP 503 The requested URL returned error: 503", ForgeUnavailable, "could not be reached"),
        ("fatal: Could not resolve host: git.example", ForgeUnavailable, "git.example could not be reached"),
        ("remote: protected branch\n! [remote rejected] a -> b (declined)", PushRefused, "branch; .*declined"),
        ("fatal: SSL certificate problem: unable to get local issuer", TurnFailed, "is not trusted on this"),
        ("a message of no known kind", TurnFailed, r"sh failed \(9\): a message of no known kind"),
    ],
)
def test_message_decides_the_error(tmp_path: Path, message: str, error: type[TurnFailed], reason: str) -> None:
    with pytest.raises(TurnFailed, match=reason) as raised:
        git(tmp_path, []).run_program("sh", "-c", 'echo "$0" >&2; exit 9', message, environ={})
    assert type(raised.value) is error


def test_standard_error_is_logged_without_the_token_and_control_characters(tmp_path: Path) -> None:
    log: list[str] = []
    script = "echo answer; printf 'sent t0ken \\033[2J\\n' >&2"
    assert git(tmp_path, log).run_program("sh", "-c", script, environ={}) == "answer"
    assert log == ["sent [token] ?[2J"]


def test_end_of_a_long_standard_error_is_logged_and_a_long_answer_is_refused(tmp_path: Path) -> None:
    log: list[str] = []
    script = 'head -c "$0" /dev/zero | tr "\\0" a >&2; echo end >&2'
    git(tmp_path, log).run_program("sh", "-c", script, "100000", environ={})
    assert log == ["a" * (64 * 1024 - len("end\n")) + "end"]
    with pytest.raises(TurnFailed, match="sh printed more than 1 MiB"):
        git(tmp_path, log).run_program("sh", "-c", 'head -c "$0" /dev/zero', str(1024**2 + 1), environ={})


def test_commands_of_a_step_share_one_deadline(tmp_path: Path) -> None:
    with pytest.raises(ProgramTimedOut, match="sleep did not end within the step's time limit"):
        git(tmp_path, [], limit_s=-1).run_program("sleep", "60", environ={})
