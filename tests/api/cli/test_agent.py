"""`project agent` shows and changes the configuration of a project's agent jobs."""

from pathlib import Path
from typing import Any

import pytest

from tests.api.cli.console import call, complaint, result

URL = "https://github.com/example/docs"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    assert call(tmp_path / "data", "project", "create", "docs").status == 0
    return tmp_path / "data"


def agent(data: Path, *options: str) -> dict[str, Any]:
    shown: dict[str, Any] = result(call(data, "project", "agent", "docs", *options))
    return shown


def refused(data: Path, *options: str) -> str:
    return complaint(call(data, "project", "agent", "docs", *options))


def test_option_changes_only_the_setting_that_it_names(data: Path) -> None:
    agent(data, "--repository", URL, "--git-token", "env:GIT_TOKEN", "--model", "gpt-5", "--time-limit-s", "600")
    shown = agent(data, "--ref", "trunk")
    assert agent(data) == shown
    options = {"repository": URL, "ref": "trunk", "git_token": "env:GIT_TOKEN", "model": "gpt-5", "time_limit_s": 600}
    assert {name: shown[name] for name in options} == options
    assert (shown["host"], shown["preset"], shown["is_sandboxed"]) == ("github", "opencode", True)


def test_changes_of_ci_configuration_are_refused_unless_the_owner_allows_them(data: Path) -> None:
    assert agent(data, "--repository", URL)["allow_ci"] is False
    assert agent(data, "--allow-ci")["allow_ci"] is True
    assert agent(data, "--refuse-ci")["allow_ci"] is False


def test_project_is_created_with_its_repository_unless_that_is_invalid(tmp_path: Path) -> None:
    done = call(tmp_path / "data", "project", "create", "docs", "--repository", URL, "--ref", "trunk")
    assert done.status == 0, done.err
    assert (agent(tmp_path / "data")["repository"], agent(tmp_path / "data")["ref"]) == (URL, "trunk")
    invalid = ("project", "create", "more", "--repository", "git@github.com:example/docs")
    assert "repository: must be an http or https URL" in complaint(call(tmp_path / "data", *invalid))
    assert [each["id"] for each in result(call(tmp_path / "data", "project", "list"))] == ["docs"]


def test_command_selects_the_preset_command_and_another_preset_removes_it(data: Path) -> None:
    shown = agent(data, "--repository", URL, "--command", "my-agent --flag 'two words'")
    assert (shown["preset"], shown["command"]) == ("command", ["my-agent", "--flag", "two words"])
    shown = agent(data, "--preset", "codex")
    assert (shown["preset"], shown["command"]) == ("codex", [])


def test_command_with_an_open_quotation_is_refused_in_one_line(data: Path) -> None:
    for options, fault in (("sh -c 'cat", "no closing quotation"), ("my-agent \\", "no escaped character")):
        error = refused(data, "--repository", URL, "--command", options)
        assert f"--command cannot be split into words: {fault};" in error


def test_empty_readable_removes_the_folders(data: Path) -> None:
    shown = agent(data, "--repository", URL, "--readable", "/srv/a", "--readable", "/srv/b")
    assert shown["readable"] == ["/srv/a", "/srv/b"]
    assert agent(data, "--readable", "")["readable"] == []


def test_repository_on_another_host_needs_its_own_token_and_api(data: Path) -> None:
    """Check that the token for one host is never sent to another host."""
    options = ("--git-token", "env:TOKEN", "--api-base", "https://api.example.com")
    before = agent(data, "--repository", "https://git.example.com/docs", *options)
    moved = ("--repository", "https://git.example.org/docs")
    message = "git_token: set one for https://git.example.org; the current one is for https://git.example.com and "
    assert message in refused(data, *moved)
    assert agent(data) == before
    shown = agent(data, *moved, "--git-token", "env:TOKEN")
    assert (shown["repository"], shown["git_token"], shown["api_base"]) == (moved[1], "env:TOKEN", "")
    assert agent(data, "--repository", "https://git.example.org/more")["git_token"] == "env:TOKEN"


def test_invalid_value_is_an_error_that_names_the_setting_and_changes_nothing(data: Path) -> None:
    before = agent(data, "--repository", URL)
    for options, message in (
        (("--repository", "https://user:pw@github.com/example/docs"), "repository: must be an http or https URL"),
        (("--ref", "--upload-pack"), "ref: must be the name of a branch"),
        (("--git-token", "ghp_0123456789"), "git_token: must be env:NAME or file:/path, not the secret itself"),
        (("--model-key", "file:relative"), "model_key: must be env:NAME or file:/path"),
        (("--model-key", "file:/usr/local/etc/key"), "model_key: must be a file that the coding agent cannot read"),
        (("--preset", "command"), "command: must be set for the preset"),
        (("--time-limit-s", "0"), "time_limit_s: must be 1 to 86400 seconds"),
        (("--readable", "agents"), "readable: must be absolute paths"),
        (("--webhook", "https://example.com/hook"), "webhook_secret: must be set together with webhook"),
        (("--webhook", "ftp://example.com", "--webhook-secret", "env:HOOK"), "webhook: must be an http or https URL"),
    ):
        error = refused(data, *options)
        assert message in error
        assert options[-1] not in error or options[-1] in ("0", "command", "agents")
    assert agent(data) == before
