"""`project agent`: what a project's jobs need, set by the command line."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from api.cli.main import main

URL = "https://github.com/example/docs"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    assert run(tmp_path / "data", "project", "create", "docs").returncode == 0
    return tmp_path / "data"


def run(data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """In this process: a start costs a second each."""
    done = CliRunner().invoke(main, ["--data", str(data), *arguments])
    return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)


def agent(data: Path, *options: str) -> dict[str, Any]:
    done = run(data, "project", "agent", "docs", *options)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def refused(data: Path, *options: str) -> str:
    done = run(data, "project", "agent", "docs", *options)
    assert (done.returncode, done.stdout) == (1, "")
    return str(done.stderr)


def test_each_option_is_kept_and_may_be_set_anew_by_itself(data: Path) -> None:
    agent(data, "--repository", URL, "--git-token", "env:GIT_TOKEN", "--model", "gpt-5", "--time-limit-s", "600")
    found = agent(data, "--ref", "trunk")
    assert agent(data) == found
    given = {"repository": URL, "ref": "trunk", "git_token": "env:GIT_TOKEN", "model": "gpt-5", "time_limit_s": 600}
    assert {name: found[name] for name in given} == given
    assert (found["host"], found["preset"], found["is_sandboxed"]) == ("github", "opencode", True)


def test_a_project_may_be_made_with_its_repository(tmp_path: Path) -> None:
    done = run(tmp_path / "data", "project", "create", "docs", "--repository", URL, "--ref", "trunk")
    assert done.returncode == 0, done.stderr
    assert (agent(tmp_path / "data")["repository"], agent(tmp_path / "data")["ref"]) == (URL, "trunk")


def test_a_bad_repository_makes_no_project(tmp_path: Path) -> None:
    done = run(tmp_path / "data", "project", "create", "docs", "--repository", "git@github.com:example/docs")
    assert done.returncode == 1
    assert "repository: an http or https URL" in done.stderr
    assert run(tmp_path / "data", "project", "list").stdout.strip() == "[]"


def test_a_command_is_a_preset_of_its_own_and_goes_with_another(data: Path) -> None:
    found = agent(data, "--repository", URL, "--command", "my-agent --flag 'two words'")
    assert (found["preset"], found["command"]) == ("command", ["my-agent", "--flag", "two words"])
    found = agent(data, "--preset", "codex")
    assert (found["preset"], found["command"]) == ("codex", [])


@pytest.mark.parametrize(
    ("given", "fault"), [("sh -c 'cat", "no closing quotation"), ("my-agent \\", "no escaped character")]
)
def test_a_command_that_cannot_be_split_is_refused_in_one_line(data: Path, given: str, fault: str) -> None:
    error = refused(data, "--repository", URL, "--command", given)
    assert f"--command cannot be split into words: {fault};" in error
    assert error.count("\n") == 1


def test_folders_that_may_be_read_are_taken_away_again(data: Path) -> None:
    found = agent(data, "--repository", URL, "--readable", "/srv/a", "--readable", "/srv/b")
    assert found["readable"] == ["/srv/a", "/srv/b"]
    assert agent(data, "--readable", "")["readable"] == []


def test_a_repository_at_another_host_needs_its_own_token_and_api(data: Path) -> None:
    """The token of one host is never sent to another."""
    given = ("--git-token", "env:TOKEN", "--api-base", "https://api.example.com")
    before = agent(data, "--repository", "https://git.example.com/docs", *given)
    moved = ("--repository", "https://git.example.org/docs")
    told = "git_token: set one for git.example.org; the current token is for git.example.com"
    assert told in refused(data, *moved)
    assert agent(data) == before
    found = agent(data, *moved, "--git-token", "env:TOKEN")
    assert (found["repository"], found["git_token"], found["api_base"]) == (moved[1], "env:TOKEN", "")
    assert agent(data, "--repository", "https://git.example.org/more")["git_token"] == "env:TOKEN"


def test_without_a_repository_it_says_how_to_set_one(data: Path) -> None:
    assert "set one with --repository URL" in refused(data)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--repository", "https://user:pw@github.com/example/docs"), "repository: an http or https URL"),
        (("--ref", "--upload-pack"), "ref: the name of a branch"),
        (("--git-token", "ghp_0123456789"), "git_token: env:NAME or file:/path, not the secret itself"),
        (("--host", "pagure"), "git_user: the user that the token belongs to, required by pagure"),
        (("--git-user", "robot@example.com"), "git_user: letters, digits"),
        (("--model-key", "file:relative"), "model_key: env:NAME or file:/path"),
        (("--model-key", "file:/usr/local/etc/key"), "model_key: a file that the coding agent cannot read"),
        (("--preset", "command"), "command: required by the preset"),
        (("--time-limit-s", "0"), "time_limit_s: 1 to 86400 seconds"),
        (("--readable", "agents"), "readable: absolute paths"),
        (("--webhook", "https://example.com/hook"), "webhook_secret: required together with webhook"),
        (("--webhook", "ftp://example.com", "--webhook-secret", "env:HOOK"), "webhook: an http or https URL"),
    ],
)
def test_what_is_not_of_its_form_is_named_and_changes_nothing(data: Path, options: tuple[str, ...], told: str) -> None:
    before = agent(data, "--repository", URL)
    said = refused(data, *options)
    assert told in said
    assert options[-1] not in said or options[-1] in ("0", "command", "agents", "pagure")
    assert agent(data) == before


def test_an_unknown_project_is_told(data: Path) -> None:
    done = run(data, "project", "agent", "blog", "--repository", URL)
    assert (done.returncode, "there is no project 'blog'" in done.stderr) == (1, True)
