"""A data folder of an older release is opened completely by this release; that of a newer release is refused."""

import json
import re
import sqlite3
import tarfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.processes.running import PROJECT, Running, readership, readership_process
from warehouse.columns.hits import COLUMNS
from warehouse.lake import delta_table, table_schema
from warehouse.lake.roots import LocalPath
from warehouse.tables import REQUESTS_TABLE

ARCHIVES = sorted((Path(__file__).parents[1] / "fixtures").glob("data-*.tar.gz"))


@dataclass
class Older:
    """A data folder of an older release, and its expected content."""

    folder: Path
    expected: dict[str, Any]

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def run(self, *arguments: str) -> Any:
        """Return the JSON output of a command over the folder."""
        ran = readership("--data", str(self.data), *arguments)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    def human(self) -> int:
        """Return the views by people in files and in waiting hits."""
        [row] = self.run("sql", "SELECT sum(views) AS human FROM daily_views")
        return int(row["human"])


@pytest.fixture(params=ARCHIVES, ids=lambda path: path.name)
def older(request: pytest.FixtureRequest, tmp_path: Path) -> Older:
    with tarfile.open(request.param) as archive:
        archive.extractall(tmp_path, filter="data")
    return Older(tmp_path, json.loads((tmp_path / "expected.json").read_text()))


def test_counts_are_complete_before_and_after_the_waiting_hits_are_loaded_and_stored_daily_views_removed(
    older: Older,
) -> None:
    stored = older.data / "lake" / "daily_views"
    assert list(stored.rglob("staged-*.parquet"))
    assert older.human() == older.expected["human"]
    older.run("flush")
    assert older.human() == older.expected["human"]
    assert not stored.exists()
    views = "SELECT date::VARCHAR AS date, path, sum(views)::INT AS views FROM daily_views GROUP BY ALL ORDER BY ALL"
    assert older.run("sql", views) == [
        *({"date": "2026-09-15", "path": f"/page/{number}", "views": 60} for number in range(5)),
        {"date": "2026-09-16", "path": "/posted", "views": 25},
        {"date": "2026-09-17", "path": "/staged", "views": 7},
    ]


@pytest.mark.long
def test_newer_columns_of_older_rows_are_null_in_files_and_in_waiting_hits_and_doctor_finds_no_fault(
    older: Older,
) -> None:
    assert [finding["fault"] for finding in older.run("doctor") if finding["fault"]] == []
    newer = [column.name for column in COLUMNS if column.since > 1]
    rows = f"SELECT count(*) AS rows, {', '.join(f'count({name}) AS {name}' for name in newer)} FROM hits"
    expected = [{"rows": older.expected["human"], **dict.fromkeys(newer, 0)}]
    assert older.run("sql", rows) == expected
    older.run("flush")
    older.run("compact")
    assert older.run("sql", rows) == expected


@pytest.mark.long
def test_log_that_the_older_release_imported_adds_nothing(older: Older) -> None:
    summary = older.run("import", PROJECT, str(older.folder / "access.log"))
    assert (summary["page_views"], summary["known"]) == (0, 300)
    assert older.human() == older.expected["human"]


@pytest.mark.long
def test_service_takes_keys_event_ids_and_jobs_of_the_older_release(older: Older) -> None:
    older.run("flush")  # hits that have waited for weeks would make the service "not ready" for a moment
    running = Running(older.data, key=older.expected["key"], environ={"READERSHIP_JOBS_AT_ONCE": "0"}).start()
    try:
        again = [{"path": "/posted", "userAgent": "x", "eventId": f"{name}-3"} for name in ("posted", "waiting")]
        assert running.post(again).json()["duplicates"] == 2
        assert running.get()["totals"]["human"] == older.expected["human"]
        base = f"{running.url}/v2/agent/{PROJECT}"
        jobs = [httpx.get(f"{base}/job/{id}", headers=running.auth).json() for id in older.expected["jobs"]]
        assert [job["status"] for job in jobs] == ["active", "archived"]
        other = {"Authorization": f"Bearer {older.expected['other_key']}"}
        assert httpx.get(f"{running.url}/v1/analytics/other/views", headers=other).json()["totals"]["total"] == 0
    finally:
        assert running.stop() == 0


@pytest.mark.long
def test_recover_lists_losses_without_changing_the_schema_of_an_older_hot_log(older: Older) -> None:
    def version() -> int:
        with closing(sqlite3.connect(older.data / "hot.sqlite")) as hot:
            return int(hot.execute("PRAGMA user_version").fetchone()[0])

    before = version()
    assert older.run("recover") == []
    assert version() == before
    for commit in (older.data / "lake").glob("*/_delta_log/*1.json"):
        commit.write_bytes(b"")
    assert [loss["fault"][-19:] for loss in older.run("recover")] == ["00001.json is empty"]
    assert version() == before


def newer_control(data: Path) -> None:
    with closing(sqlite3.connect(data / "control.sqlite", isolation_level=None)) as connection:
        connection.execute("UPDATE schema_version SET version = 99")


def newer_hot_log(data: Path) -> None:
    with closing(sqlite3.connect(data / "hot.sqlite")) as connection:
        connection.execute("PRAGMA user_version=99")


def newer_table(data: Path) -> None:
    table = delta_table.open_table(LocalPath(data / "lake"), REQUESTS_TABLE)
    table.alter.set_table_properties({table_schema.PROPERTY: "99"}, raise_if_not_exists=False)


def contents(data: Path) -> dict[Path, bytes]:
    """Return the content of every data file: all but those in `run` and the `-shm` files of SQLite."""
    files = (path for path in data.rglob("*") if path.is_file() and path.parent.name != "run")
    return {path: path.read_bytes() for path in files if not path.name.endswith("-shm")}


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "store"),
    [
        (newer_control, "the control database"),
        (newer_hot_log, "the hot log"),
        (newer_table, "the table requests of the lake"),
    ],
)
def test_newer_store_is_refused_in_one_line_and_nothing_is_written(
    tmp_path: Path, change: Callable[[Path], None], store: str
) -> None:
    data = tmp_path / "data"
    assert readership("--data", str(data), "project", "create", "site").returncode == 0
    log = tmp_path / "access.log"
    log.write_text('192.0.2.7 - - [15/Sep/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "Firefox"\n')
    change(data)
    before = contents(data)
    commands = [["serve", "--port", "0"], ["flush"], ["import", "site", str(log)]]
    commands += [["project", "list"]] if change is newer_control else [["sql", "SELECT 1"], ["doctor"]]
    for command in commands:
        run = readership_process if command[0] == "serve" else readership
        ran = run("--data", str(data), *command)
        assert ran.returncode == 1, command
        assert re.fullmatch(
            f"Error: {store} has schema version 99, and this Readership knows versions up to [0-9]+: "
            "install the release that wrote it, or a newer one; nothing was changed\n",
            ran.stderr,
        )
    assert contents(data) == before
