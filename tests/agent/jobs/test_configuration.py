"""Configuration of a project's agent jobs: valid and invalid values, changes, and the stored form."""

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent.errors import InvalidConfiguration, NotConfigured
from agent.jobs import configuration
from agent.jobs.configuration import Changes, Configuration, changed
from tests.agent.conftest import PROJECT
from tests.stores import sql
from tests.stores.between import at_once
from tests.stores.postgresql import new_database
from warehouse.control import database, projects
from warehouse.database.pool import Pool

REPOSITORY = "https://git.example/docs"
SAVED = Configuration(REPOSITORY, model="a-model", api_base="https://git.example/api/v3", git_token="env:TOKEN")

STORED_BY_0_1_0 = {
    "repository": "https://git.example/docs",
    "ref": "main",
    "host": "gitlab",
    "api_base": "",
    "git_token": "file:/run/token",
    "preset": "command",
    "command": ["sh", "-c", "cat > page.md"],
    "model": "",
    "model_base": "",
    "model_key": "",
    "time_limit_s": 600,
    "readable": ["/opt/tools"],
    "is_sandboxed": False,
    "webhook": "https://example.com/hook",
    "webhook_secret": "env:HOOK",
}
ADDED_SINCE = {"allow_ci": False, "publish_prompts": True}
CURRENT = Configuration(
    REPOSITORY,
    forge="gitlab",
    git_token="file:/run/token",
    preset="command",
    command=("sh", "-c", "cat > page.md"),
    time_limit_s=600,
    readable=("/opt/tools",),
    is_sandboxed=False,
    webhook="https://example.com/hook",
    webhook_secret="env:HOOK",
)


def content(engine: Pool) -> Any:
    [stored] = sql.column(engine, "SELECT CAST(content AS TEXT) FROM agent_configurations")
    return json.loads(stored)


def load(engine: Pool, project: str = PROJECT) -> Configuration:
    with engine.connect() as connection:
        return configuration.load(connection, project)


@pytest.mark.long
def test_configuration_is_stored_as_by_version_0_1_0(engine: Pool) -> None:
    configuration.store(engine, PROJECT, CURRENT)
    assert content(engine) == STORED_BY_0_1_0 | ADDED_SINCE
    assert load(engine) == CURRENT


def test_unknown_field_is_ignored_and_a_missing_one_has_its_default(engine: Pool) -> None:
    stored = json.dumps({"repository": REPOSITORY, "host": "gitea", "reviewer": "somebody"})
    sql.run(engine, "UPDATE agent_configurations SET content = :stored", stored=stored)
    assert load(engine) == Configuration(REPOSITORY, forge="gitea")


def test_stored_configuration_of_a_removed_forge_is_replaced_by_a_new_one(engine: Pool) -> None:
    stored = json.dumps({"repository": REPOSITORY, "host": "pagure", "git_user": "robot"})
    sql.run(engine, "UPDATE agent_configurations SET content = :stored", stored=stored)
    with pytest.raises(NotConfigured, match="not supported any more .Invalid enum value 'pagure'"):
        load(engine)
    configuration.change(engine, PROJECT, {"repository": REPOSITORY, "forge": "gitea"})
    assert load(engine) == Configuration(REPOSITORY, forge="gitea")


def test_project_without_a_configuration_or_a_model_cannot_start_a_job(engine: Pool) -> None:
    projects.create(engine, "bare", (), 0)
    with pytest.raises(NotConfigured, match="readership project agent bare --repository URL"):
        load(engine, "bare")
    configuration.store(engine, "bare", Configuration(REPOSITORY, preset="claude"))
    with engine.connect() as connection, pytest.raises(NotConfigured, match="has no model for claude"):
        configuration.load_complete(connection, "bare")
    configuration.store(engine, "bare", Configuration(REPOSITORY, preset="command", command=("true",)))
    with engine.connect() as connection:
        assert configuration.load_complete(connection, "bare").model == ""


def test_changes_at_once_are_both_stored(postgresql: str) -> None:
    engine = database.connect(new_database(postgresql))
    projects.create(engine, PROJECT, (), 0)
    changes: list[Changes] = [{"repository": REPOSITORY, "model": "a-model"}, {"repository": REPOSITORY, "ref": "next"}]
    first, second = (partial(configuration.change, engine, PROJECT, each) for each in changes)
    at_once(engine, "INSERT INTO agent_configurations", first, second)
    with engine.connect() as connection:
        assert configuration.load(connection, PROJECT) == Configuration(REPOSITORY, model="a-model", ref="next")
    engine.close()


def test_invalid_change_leaves_the_configuration_as_it_was(engine: Pool) -> None:
    configuration.store(engine, PROJECT, SAVED)
    with pytest.raises(InvalidConfiguration, match="time_limit_s"):
        configuration.change(engine, PROJECT, {"ref": "next", "time_limit_s": 0})
    with engine.connect() as connection:
        assert configuration.load(connection, PROJECT) == SAVED


def test_change_replaces_only_its_own_fields() -> None:
    assert changed(SAVED, {"ref": "next", "time_limit_s": 60}) == Configuration(
        REPOSITORY,
        ref="next",
        model="a-model",
        api_base="https://git.example/api/v3",
        git_token="env:TOKEN",
        time_limit_s=60,
    )


def test_move_within_a_host_does_not_change_api_base_and_token() -> None:
    moved = changed(SAVED, {"repository": "https://GIT.example/site"})
    assert (moved.api_base, moved.git_token) == (SAVED.api_base, SAVED.git_token)


def test_move_to_another_host_clears_the_api_base_and_needs_another_token() -> None:
    other = {"repository": "https://git.example.org/docs"}
    with pytest.raises(InvalidConfiguration, match=r"^git_token: set one for https://git\.example\.org; "):
        changed(SAVED, other)
    moved = changed(SAVED, {**other, "git_token": "env:OTHER"})
    assert (moved.api_base, moved.git_token) == ("", "env:OTHER")
    base = "https://git.example.org/git/api/v3"
    assert changed(SAVED, {**other, "git_token": "", "api_base": base}).api_base == base


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"api_base": "https://other.example/api/v3"}, "https://other.example"),
        ({"api_base": "http://git.example/api/v3"}, "http://git.example"),
        ({"api_base": "https://git.example:8443/api/v3"}, "https://git.example:8443"),
        ({"repository": "http://git.example/docs"}, "http://git.example"),
        ({"repository": "http://git.example/docs", "api_base": ""}, "http://git.example"),
    ],
)
def test_token_is_set_again_for_another_place_that_gets_it(change: Changes, place: str) -> None:
    with pytest.raises(InvalidConfiguration, match=f"git_token: set one for {place}; the current one is for"):
        changed(SAVED, change)
    assert changed(SAVED, {**change, "git_token": "env:OTHER"}).git_token == "env:OTHER"
    assert changed(SAVED, {**change, "git_token": ""}).git_token == ""


@pytest.mark.parametrize(
    ("saved", "change", "place"),
    [
        ({}, {"model_base": "https://models.example/v1"}, "https://models.example"),
        (
            {"model_base": "https://models.example/v1"},
            {"model_base": "http://models.example/v1"},
            "http://models.example",
        ),
        ({"model_base": "https://models.example/v1"}, {"model_base": ""}, "https://api.openai.com"),
        ({}, {"preset": "claude"}, "https://api.anthropic.com"),
        ({"preset": "command", "command": ("true",)}, {"preset": "opencode", "command": ()}, "https://api.openai.com"),
    ],
)
def test_model_key_is_set_again_for_another_server_that_gets_it(saved: Changes, change: Changes, place: str) -> None:
    before = changed(SAVED, {"model_key": "env:MODEL_KEY", **saved})
    with pytest.raises(InvalidConfiguration, match=f"^model_key: set one for {place}; the current one is for"):
        changed(before, change)
    assert changed(before, {**change, "model_key": "env:OTHER"}).model_key == "env:OTHER"
    assert changed(before, {**change, "model_key": ""}).model_key == ""
    assert changed(before, {"model_base": before.model_base, "preset": before.preset}) == before


def test_api_base_that_follows_from_the_repository_is_such_a_place_too() -> None:
    """Change the kind of forge: the API of GitHub is on another host than its repositories."""
    saved = Configuration("https://github.com/example/docs", forge="gitlab", git_token="env:TOKEN")
    with pytest.raises(InvalidConfiguration, match="git_token: set one for https://api.github.com"):
        changed(saved, {"forge": "github"})
    assert changed(saved, {"api_base": "https://GitHub.com/api/v4"}).git_token == "env:TOKEN"
    assert changed(saved, {"repository": "https://github.com/example/site"}).git_token == "env:TOKEN"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("repository", ""),
        ("repository", "git@git.example:docs"),
        ("repository", "https://user:password@git.example/docs"),
        ("ref", "--upload-pack=x"),
        ("forge", "bitbucket"),
        ("api_base", "git.example/api"),
        ("api_base", "https://git.example/api?x=1"),
        ("preset", "emacs"),
        ("preset", "command"),
        ("command", ("true",)),
        ("model_base", "http://user@model.example"),
        ("model_base", "http://model.example:70000/"),
        ("time_limit_s", 0),
        ("time_limit_s", 24 * 3600 + 1),
        ("readable", ("tools",)),
        ("webhook", "ftp://example.com"),
        ("webhook_secret", "env:HOOK"),
        ("git_token", "ghp_0123456789"),
        ("model_key", "file:relative"),
        ("model_key", "file:/usr/local/key"),
    ],
)
def test_invalid_value_is_refused_with_the_name_of_its_setting(field: str, value: object) -> None:
    setting = {("forge", "bitbucket"): "host", ("preset", "command"): "command"}
    with pytest.raises(InvalidConfiguration) as refused:
        changed(Configuration(REPOSITORY), {field: value})
    assert str(refused.value).split(": ")[0] == setting.get((field, str(value)), field)
    assert "ghp_" not in str(refused.value)


@pytest.mark.parametrize(("readable", "is_valid"), [((), True), (("/opt/tools",), False), (("/opt/toolshed",), True)])
def test_file_of_a_secret_must_not_be_readable_by_the_coding_agent(readable: tuple[str, ...], is_valid: bool) -> None:
    changes = {"model_key": "file:/opt/tools/key", "readable": readable}
    if is_valid:
        assert changed(Configuration(REPOSITORY), changes).readable == readable
        return
    with pytest.raises(InvalidConfiguration, match="model_key: must be a file that the coding agent cannot read"):
        changed(Configuration(REPOSITORY), changes)


@pytest.mark.parametrize(
    "path",
    [
        *("/etc/../usr/x", "/lib64/x", "/sbin/x", "/bin/../bin/x", "/etc/ssl/certs/x", "/etc/ca-certificates/x"),
        *("LINK/x", "READABLE/../tools/x", f"{sys.base_prefix}/x"),
    ],
)
def test_secret_that_the_sandbox_shows_is_refused_under_any_name(tmp_path: Path, path: str) -> None:
    """Name folders that every sandbox shows, a link to one, the folder of Python, and a readable folder by a link."""
    (tmp_path / "link").symlink_to("/usr")
    (tmp_path / "tools").mkdir()
    (tmp_path / "readable").symlink_to("tools")
    name = path.replace("LINK", str(tmp_path / "link")).replace("READABLE", str(tmp_path / "readable"))
    with pytest.raises(InvalidConfiguration, match="model_key: must be a file that the coding agent cannot read"):
        changed(Configuration(REPOSITORY), {"model_key": f"file:{name}", "readable": (str(tmp_path / "readable"),)})
