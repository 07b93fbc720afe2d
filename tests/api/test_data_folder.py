"""Which commands create a data folder, and who may read it."""

import json
import re
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from api import data_folder, settings
from ingest.hits.hit import Hit
from ingest.hits.row import row as hit_row
from ingest.hotlog import deduplication, new_values
from ingest.hotlog.new_values import NewValues
from tests.api.cli.console import call
from tests.processes.running import PROJECT, new_key, readership_process
from tests.stores import sql
from tests.stores.postgresql import new_database
from tests.warehouse.site import DAY, NOON, ROOT, view
from warehouse.folder import sqlite_url
from warehouse.hotlog import batches
from warehouse.maintenance.load import load
from warehouse.schema import HOT

LOG = str(ROOT / "sample_data" / "access.log")
WITHOUT_DATA = [
    command.split()
    for command in (
        "project list", f"project origins {PROJECT} https://example.com", f"project agent {PROJECT}",
        f"project delete {PROJECT} --yes", f"key create {PROJECT}", "key list", "key revoke x", "user list",
        "user remove x", f"import {PROJECT} {LOG}", f"import {PROJECT} {LOG} --dry-run",
        f"import {PROJECT} {LOG} --follow", "sql SELECT(1)", "files hits", "flush", "compact", "rebuild", "reclassify",
        "reclassify --dry-run", "doctor", "retention --yes", "recover",
    )
]  # fmt: skip
"""Commands that need existing data: all but serve, worker, demo, project create and classify."""


def run(data: str | Path, *arguments: str, **environ: str) -> tuple[int, str, str]:
    """Run a command in this process; return its status, standard output and standard error."""
    done = call(Path(data), *arguments, **environ)
    return done.status, done.out, done.err


@pytest.mark.parametrize("exists", [False, True], ids=["missing", "empty"])
def test_command_on_a_folder_without_data_fails_and_creates_nothing(tmp_path: Path, exists: bool) -> None:
    folder = tmp_path / "typo"
    if exists:
        folder.mkdir()
    error = f"Error: there is no data in {folder}; name another folder with --data\n"
    for command in WITHOUT_DATA:
        assert run(folder, *command) == (1, "", error), command
        assert [*tmp_path.rglob("*")] == ([folder] if exists else []), command


@pytest.mark.long
def test_command_on_an_empty_postgresql_database_fails_and_creates_nothing(tmp_path: Path, postgresql: str) -> None:
    url = new_database(postgresql)
    engine = sql.opened(url)
    error = r"Error: the (hot log|control database) [^\n]+ has no tables: start readership serve, [^\n]+\n"
    for command in WITHOUT_DATA:
        status, out, err = run(tmp_path / "data", *command, READERSHIP_DATABASE_URL=url)
        assert (status, out) == (1, ""), command
        assert re.fullmatch(error, err), command
        assert not (tmp_path / "data").exists(), command
        assert sql.table_names(engine) == [], command
    engine.close()


def test_lost_tables_of_a_postgresql_database_are_no_empty_database(tmp_path: Path, postgresql: str) -> None:
    new_key(tmp_path / "data", environ={"READERSHIP_DATABASE_URL": new_database(postgresql)})
    empty = new_database(postgresql)
    for command in (("flush",), ("doctor",), ("project", "list")):
        status, out, err = run(tmp_path / "data", *command, READERSHIP_DATABASE_URL=empty)
        assert (status, out) == (1, "")
        assert "is missing or empty, and" in err
        assert "readership recover lists what is lost" in err
    status, out, _ = run(tmp_path / "data", "recover", READERSHIP_DATABASE_URL=empty)
    assert (status, len(json.loads(out))) == (0, 2)


def test_missing_control_database_is_named_and_not_created(tmp_path: Path) -> None:
    new_key(tmp_path / "data")
    (tmp_path / "data" / "control.sqlite").unlink()
    elsewhere = tmp_path / "elsewhere.sqlite"
    for file, environ in (
        (tmp_path / "data" / "control.sqlite", {}),
        (elsewhere, {"READERSHIP_DATABASE_URL": sqlite_url(elsewhere)}),
    ):
        status, out, err = run(tmp_path / "data", "key", "list", **environ)
        assert (status, out) == (1, "")
        assert re.fullmatch(rf"Error: there is no control database at {re.escape(str(file))}[^\n]*\n", err)
        assert not file.exists()


def test_command_on_the_control_database_of_another_folder_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    for name in ("data", "other"):
        new_key(tmp_path / name)
        with closing(batches.connect(tmp_path / name / "hot.sqlite")) as hot:
            batches.append(hot, pa.RecordBatch.from_pylist([view()], HOT), 0)
    shutil.copy(tmp_path / "other" / "control.sqlite", tmp_path / "data" / "control.sqlite")
    before = run(tmp_path / "other", "key", "list")
    status, out, err = run(tmp_path / "data", "key", "create", PROJECT)
    assert (status, out) == (1, "")
    assert "control.sqlite is not the one that" in err
    shutil.copy(tmp_path / "data" / "control.sqlite", tmp_path / "other" / "control.sqlite")
    assert run(tmp_path / "other", "key", "list") == before


def test_command_on_an_external_control_database_needs_no_data_folder(tmp_path: Path) -> None:
    database = tmp_path / "control.sqlite"
    new_key(tmp_path / "data", environ={"READERSHIP_DATABASE_URL": sqlite_url(database)})
    status, out, _ = run(tmp_path / "none", "key", "list", READERSHIP_DATABASE_URL=sqlite_url(database))
    assert status == 0
    assert [key["project"] for key in json.loads(out)] == [PROJECT]
    assert not (tmp_path / "none").exists()


def test_classify_needs_no_data_folder(tmp_path: Path) -> None:
    status, out, _ = run(tmp_path / "none", "classify", "GPTBot/1.3")
    assert (status, json.loads(out)["agent"]) == (0, "GPTBot")
    assert list(tmp_path.iterdir()) == []


def test_pages_of_the_last_days_keep_their_names_in_a_hot_log_without_values(tmp_path: Path, database_url: str) -> None:
    environ = {"READERSHIP_DATABASE_URL": database_url, "READERSHIP_NEW_VALUES_PER_DAY": "1"}
    chosen = settings.read(environ, tmp_path / "data")
    data_folder.prepare(chosen)
    recent = [view(f"/{number}", NOON - number * DAY, utm_source="mail") for number in range(8)]
    with closing(batches.connect(chosen.hot_log)) as hot:
        old = NOON - 8 * DAY
        rows = [*recent, *recent, view("/rare"), view("/0", old, utm_source="mail", project_id="another")]
        batches.append(hot, pa.RecordBatch.from_pylist(rows, HOT), NOON.timestamp())
        load(hot, chosen.lake, 60)
        data_folder.remember_values(chosen, NOON)

        def stored(*paths: str, project: str = "site") -> list[object]:
            beacons = [
                hit_row(project, Hit(path, 0, "", None, {"utm_source": "mail"}, None, None, None), "beacon", 0)
                for path in paths
            ]
            with batches.transaction(hot):
                bounded = NewValues(0, data_folder.secret(chosen)).bounded(hot, beacons, int(NOON.timestamp()))
            return [row[HOT.names.index("path")] for row in bounded if row[HOT.names.index("utm_source")] == "mail"]

        assert stored("/0", "/6", "/rare") == ["/0", "/6", "/(other)"]  # seven times the limit
        assert stored("/0", project="another") == []  # its source is new, too
        deduplication.delete_project(hot, "site")
        new_values.add_values(hot, [("site", "path", "/new", 0)], b"")
        data_folder.remember_values(chosen, NOON)  # a hot log with values needs none
        assert stored("/0") == []
        data_folder.remember_values(chosen, NOON, is_repair=True)
        assert stored("/0") == ["/0"]


def test_service_stores_hits_if_a_recent_file_is_damaged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    chosen = settings.read({}, tmp_path / "data")
    data_folder.prepare(chosen)
    with closing(batches.connect(chosen.hot_log)) as hot:
        batches.append(hot, pa.RecordBatch.from_pylist([view("/a", NOON)], HOT), NOON.timestamp())
        load(hot, chosen.lake, 60)
    (file,) = (tmp_path / "data" / "lake" / "hits").rglob("*.parquet")
    file.write_bytes(b"damaged")
    data_folder.remember_values(chosen, NOON)
    assert file.name in caplog.text


def mode_of(folder: Path) -> str:
    return f"{folder.stat().st_mode & 0o7777:04o}"


def test_only_the_owner_has_access_to_a_new_data_folder_and_to_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir(mode=0o755)
    (tmp_path / "empty" / "lost+found").mkdir()
    for folder in ("data", "empty"):
        status, _, err = run(tmp_path / folder, "project", "create", PROJECT)
        assert (status, err, mode_of(tmp_path / folder)) == (0, "", "0700")


@pytest.mark.long
def test_command_that_writes_removes_the_permissions_of_other_users(tmp_path: Path) -> None:
    data = tmp_path / "data"
    new_key(data)
    for command in (("project", "create", "other"), ("flush",), ("import", PROJECT, LOG)):
        data.chmod(0o2755)
        assert run(data, *command)[0] == 0
        assert mode_of(data) == "2700"


@pytest.mark.long
def test_folder_with_files_of_other_programs_keeps_its_mode_and_a_warning_is_printed(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir(mode=0o755)
    (folder / "mail.txt").touch()
    done = readership_process("--data", str(folder), "project", "create", PROJECT)
    assert (done.returncode, mode_of(folder)) == (0, "0755")
    assert done.stderr == f"other users have access to {folder} (mode 0755); run chmod 700 '{folder}'\n"


def test_commands_that_open_a_data_folder_load_neither_asyncio_nor_starlette() -> None:
    program = "import sys, api.data_folder; print(sorted({'asyncio', 'starlette'} & {*sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert loaded.stdout == "[]\n"
