"""Which commands create a data folder, and who may read it."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from api.cli import main
from tests.running import PROJECT, new_key
from tests.warehouse.site import ROOT
from warehouse.folder import sqlite_url

LOG = str(ROOT / "sample_data" / "access.log")
WITHOUT_DATA = (
    ("project", "list"),
    ("project", "origins", PROJECT, "https://example.com"),
    ("project", "agent", PROJECT),
    ("project", "delete", PROJECT, "--yes"),
    ("key", "create", PROJECT),
    ("key", "list"),
    ("key", "revoke", "x"),
    ("import", PROJECT, LOG),
    ("import", PROJECT, LOG, "--dry-run"),
    ("import", PROJECT, LOG, "--follow"),
    ("sql", "SELECT 1"),
    ("flush",),
    ("compact",),
    ("rebuild",),
    ("reclassify",),
    ("reclassify", "--dry-run"),
    ("doctor",),
)
"""Commands that need existing data: all but serve, worker, demo, project create and classify."""


def run(*arguments: str | Path, **environ: str) -> tuple[int, str, str]:
    """Run a command in this process; return its status, standard output and standard error."""
    done = CliRunner().invoke(main, list(map(str, arguments)), env=environ)
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.parametrize("command", WITHOUT_DATA, ids=" ".join)
@pytest.mark.parametrize("exists", [False, True], ids=["missing", "empty"])
def test_a_command_on_a_folder_without_data_says_so_and_creates_nothing(
    tmp_path: Path, command: tuple[str, ...], exists: bool
) -> None:
    folder = tmp_path / "typo"
    if exists:
        folder.mkdir()
    status, out, err = run("--data", folder, *command)
    assert (status, out) == (1, "")
    assert err == f"Error: there is no data in {folder}; name another folder with --data\n"
    assert [path for path in tmp_path.rglob("*") if path != folder] == []
    assert folder.exists() == exists


def test_a_control_database_that_is_missing_is_named_and_not_created(tmp_path: Path) -> None:
    new_key(tmp_path / "data")
    (tmp_path / "data" / "control.sqlite").unlink()
    elsewhere = tmp_path / "elsewhere.sqlite"
    for file, environ in (
        (tmp_path / "data" / "control.sqlite", {}),
        (elsewhere, {"READERSHIP_DATABASE_URL": sqlite_url(elsewhere)}),
    ):
        status, out, err = run("--data", tmp_path / "data", "key", "list", **environ)
        assert (status, out) == (1, "")
        assert re.fullmatch(rf"Error: there is no control database at {re.escape(str(file))}[^\n]*\n", err)
        assert not file.exists()


def test_a_command_on_the_control_database_alone_needs_no_data_folder(tmp_path: Path) -> None:
    database = tmp_path / "control.sqlite"
    new_key(tmp_path / "data", environ={"READERSHIP_DATABASE_URL": sqlite_url(database)})
    status, out, _ = run("--data", tmp_path / "none", "key", "list", READERSHIP_DATABASE_URL=sqlite_url(database))
    assert status == 0
    assert [key["project"] for key in json.loads(out)] == [PROJECT]
    assert not (tmp_path / "none").exists()


def test_a_user_agent_is_classified_without_a_data_folder(tmp_path: Path) -> None:
    status, out, _ = run("--data", tmp_path / "none", "classify", "GPTBot/1.3")
    assert (status, json.loads(out)["agent"]) == (0, "GPTBot")
    assert list(tmp_path.iterdir()) == []
