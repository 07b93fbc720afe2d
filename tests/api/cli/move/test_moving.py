"""Stores of a data folder are moved once, exactly, and the folder is then refused."""

import json
import os
import shutil
import signal
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

import warehouse
from api.accounts import passwords, users
from ingest.visitors.salts import open_salts
from tests.processes import forked
from tests.processes.running import PROJECT, Running, new_key, readership
from tests.stores.postgresql import new_database
from warehouse.control import database
from warehouse.errors import DataMoved
from warehouse.folder import MOVED, SALTS, read_moved, sqlite_url
from warehouse.hotlog import batches
from warehouse.lake import roots
from warehouse.lake.remote.object_path import ObjectPath

PASSWORD = "a long password of the tests"
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:120.0) Gecko/20100101 Firefox/120.0"
TOTALS = {"/log": 9, "/loaded": 1, "/waiting": 1}
LOG = "".join(
    f'192.0.2.{number} - - [15/Sep/2026:12:00:0{number} +0000] "GET /log HTTP/1.1" 200 5 "-" "{BROWSER}"\n'
    for number in range(9)
)


class Folder:
    """A data folder, with the export, the key and the receipt of its service before the move."""

    def __init__(self, parent: Path, key: str) -> None:
        self.data, self.log, self.key = parent / "data", parent / "access.log", key
        self.export: Any = None
        self.as_of = ""
        self.cookies: dict[str, str] = {}

    def copied(self, parent: Path) -> "Folder":
        shutil.copytree(self.data.parent, parent, dirs_exist_ok=True)
        copy = Folder(parent, self.key)
        copy.export, copy.as_of, copy.cookies = self.export, self.as_of, self.cookies
        return copy

    def run(self, *arguments: str, **environ: str) -> Any:
        """Return the JSON that a command prints."""
        done = readership("--data", str(self.data), *arguments, env={**os.environ, **environ})
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def refused(self, *arguments: str, **environ: str) -> str:
        done = readership("--data", str(self.data), *arguments, env={**os.environ, **environ})
        assert done.returncode == 1, done.stdout
        return done.stderr


def sign_in(running: Running) -> dict[str, str]:
    """Return the cookies of a new session."""
    headers, form = {"Sec-Fetch-Site": "same-origin"}, {"name": "owner", "password": PASSWORD}
    answer = httpx.post(f"{running.url}/sign-in", headers=headers, data=form, timeout=60)
    assert answer.status_code == 303, answer.text
    return dict(answer.cookies)


def hits(path: str, event_id: str) -> list[dict[str, str]]:
    return [{"path": path, "userAgent": BROWSER, "eventId": event_id}]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Return a folder with loaded, waiting and imported hits, whose service was killed."""
    parent = tmp_path_factory.mktemp("original")
    running = Running(parent / "data", environ={"READERSHIP_JOBS_AT_ONCE": "0"}).start()
    folder = Folder(parent, running.key)
    folder.log.write_text(LOG)
    assert running.post(hits("/loaded", "a")).json()["accepted"] == 1
    assert running.run("import", PROJECT, str(folder.log)).returncode == 0
    assert running.run("flush").returncode == 0
    assert running.post(hits("/waiting", "b"), **{"Idempotency-Key": "k"}).json()["accepted"] == 1
    export = httpx.get(running.views, headers=running.auth, timeout=60)
    folder.export, folder.as_of = export.json()["views"], export.headers["X-As-Of"]
    engine = database.connect(sqlite_url(folder.data / "control.sqlite"))
    users.create(engine, "owner", "owner", passwords.hashed(PASSWORD), 0)
    engine.close()
    folder.cookies = sign_in(running)
    running.kill()
    return folder


@pytest.fixture
def folder(original: Folder, tmp_path: Path) -> Folder:
    return original.copied(tmp_path)


def check(folder: Folder, data: Path, environ: dict[str, str]) -> None:
    """Check that a node in the new places answers, de-duplicates, imports and signs in as the old service would."""
    running = Running(data, environ={"READERSHIP_JOBS_AT_ONCE": "0", **environ}, key=folder.key).start()
    try:
        assert running.get()["views"] == folder.export
        assert running.post(hits("/loaded", "a")).json()["duplicates"] == 1
        again = running.post(hits("/waiting", "b"), **{"Idempotency-Key": "k"})
        assert again.json()["accepted"] == 1  # the stored receipt
        assert running.get()["views"] == folder.export
        known = running.run("import", PROJECT, str(folder.log))
        assert json.loads(known.stdout)["known"] == 9, known.stderr
        assert running.post(hits("/new", "c")).json()["accepted"] == 1
        assert running.run("flush").returncode == 0
        assert {each["path"]: each["total"] for each in running.get()["views"]} == {**TOTALS, "/new": 1}
        assert running.get(f"asOf={folder.as_of}")["views"] == folder.export
        assert httpx.get(f"{running.url}/projects", cookies=folder.cookies).status_code == 200
        assert sign_in(running)
        assert running.run("doctor").returncode == 0
    finally:
        assert running.stop() == 0


AND_DIE = """
import os, signal, sys
from pathlib import Path
from api import settings
from api.cli.move import moving, places
data, fatal, passes, *to = sys.argv[1:]
passes = int(passes)

def on_point(step):
    global passes
    if step == fatal:
        if passes == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        passes -= 1

now = settings.read(os.environ, Path(data), is_moving=True)
moving.move(places.choose(os.environ, now, to), moving.Watch(on_point=on_point))
"""


def die_at(folder: Folder, step: str, passes: int, to: Sequence[str]) -> None:
    """Move in another process, which kills itself at the step after it has passed the step `passes` times."""
    process = forked.start(AND_DIE, [folder.data, step, passes, *to], log=folder.data.parent / "die.log")
    assert process.wait(120) == -signal.SIGKILL, (folder.data.parent / "die.log").read_text()


@pytest.mark.night
def test_killed_move_continues_and_is_exact(folder: Folder, postgresql: str, bucket: str) -> None:
    url, lake = new_database(postgresql), f"{bucket}/lake"
    to = [url.replace("+psycopg", ""), lake]
    environ = {"READERSHIP_DATABASE_URL": url, "READERSHIP_LAKE": lake}
    for step, passes in (("after log file", 2), ("before record", 0)):
        die_at(folder, step, passes, to)
        assert read_moved(folder.data) is None
        node = Folder(folder.data.parent / step, "")
        assert "is missing or empty, and there are hits" in node.refused("flush", **environ)
        if step == "after log file":  # the source is in use again
            folder.run("flush")
    for step in ("before commit", "after commit", "before end"):
        die_at(folder, step, 0, to)
        assert "is not complete: run readership move again" in folder.refused("flush")
        assert "is not complete: run readership move again" in folder.refused("flush", **environ)
        assert "name the same places" in folder.refused("move", "--to", to[0])
    done = folder.run("move", *(part for url in to for part in ("--to", url)))
    assert done["rows"] == {}
    assert [each["fault"] for each in done["findings"]] == [None] * len(done["findings"])
    check(folder, folder.data.parent / "new", environ)
    assert "_move.json" not in objects(folder, lake)


@pytest.mark.long
def test_moved_databases_are_used_and_the_folder_is_refused_without_them(folder: Folder, postgresql: str) -> None:
    url = new_database(postgresql)
    environ = {"READERSHIP_DATABASE_URL": url}
    before = {name: (folder.data / name).read_bytes() for name in ("hot.sqlite", "control.sqlite")}
    open_salts("sqlite:///", folder.data).close()
    done = folder.run("move", **environ)
    assert not (folder.data / SALTS).exists()
    assert (done["rows"]["batches"], done["rows"]["projects"], done["files"]) == (4, 1, 0)
    assert not any(finding["fault"] for finding in done["findings"])
    for command in ("flush", "doctor", "recover"):
        assert ": set READERSHIP_DATABASE_URL to the database test_" in folder.refused(command)
    with pytest.raises(DataMoved):
        warehouse.connect(folder.data)
    with closing(warehouse.connect(folder.data, database_url=url)) as opened:
        assert opened.sql("SELECT count(*) FROM hits").fetchall() == [(11,)]
    assert folder.run("move", **environ)["rows"] == {}
    assert "were moved to" in folder.refused("move", "--to", new_database(postgresql))
    check(folder, folder.data, environ)
    for name, content in before.items():
        with closing(sqlite3.connect(folder.data / name)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert len(content) <= (folder.data / name).stat().st_size


def objects(folder: Folder, lake: str) -> set[str]:
    """Return the names of the objects at the top of a lake."""
    root = roots.open_remote(lake, folder.data / "lake")
    assert isinstance(root, ObjectPath)
    return {key.partition("/")[0] for key, _ in root.files()}


@pytest.mark.long
def test_value_that_postgresql_refuses_ends_the_move_before_a_copy(
    folder: Folder, postgresql: str, bucket: str
) -> None:
    with closing(sqlite3.connect(folder.data / "control.sqlite", isolation_level=None)) as control:
        control.execute("UPDATE keys SET name = 'a' || char(0)")
    fault = folder.refused("move", "--to", new_database(postgresql), "--to", f"{bucket}/lake")
    assert "the column name of the table keys, in the row with the rowid 1: it has a NUL character" in fault
    assert objects(folder, f"{bucket}/lake") == set()
    assert read_moved(folder.data) is None


@pytest.mark.night
def test_lake_is_moved_and_the_databases_later(folder: Folder, postgresql: str, bucket: str) -> None:
    lake = {"READERSHIP_LAKE": f"{bucket}/lake"}
    die_at(folder, "before record", 0, [lake["READERSHIP_LAKE"]])
    folder.run("flush")  # the source is in use again
    for step in ("before commit", "before end"):
        die_at(folder, step, 0, [lake["READERSHIP_LAKE"]])
        assert ("_move.json" in objects(folder, lake["READERSHIP_LAKE"])) == (step == "before commit")
        for environ in ({}, lake):
            assert "is not complete: run readership move again" in folder.refused("flush", **environ)
    assert folder.run("move", "--to", lake["READERSHIP_LAKE"])["files"] == 0
    assert "set READERSHIP_LAKE to s3://" in folder.refused("flush")
    folder.run("flush", **lake)
    assert "moved to s3://" in folder.refused("move", "--to", "s3://other/lake")
    url = new_database(postgresql)
    assert "set the new places" in folder.refused("move", "--to", url)
    assert folder.run("move", READERSHIP_DATABASE_URL=url, **lake)["rows"]["batches"] == 4
    query = "SELECT path, count(*) AS hits FROM hits GROUP BY path ORDER BY path"
    rows = folder.run("sql", query, READERSHIP_DATABASE_URL=url, **lake)
    assert {row["path"]: row["hits"] for row in rows} == TOTALS


@pytest.mark.long
def test_folder_in_use_and_places_with_other_data_are_refused(
    folder: Folder, original: Folder, postgresql: str, tmp_path: Path
) -> None:
    url = new_database(postgresql)
    with closing(batches.connect(folder.data / "hot.sqlite")) as hot:
        batches.last_id(hot)
        assert "another process has" in folder.refused("move", "--to", url)
    assert read_moved(folder.data) is None
    folder.run("move", "--to", url)
    (folder.data / MOVED).unlink()
    assert "from an earlier move, and may have newer hits" in folder.refused("move", "--to", url)
    folder.run("flush")  # the folder is as it was
    other = Folder(tmp_path / "other", "")
    new_key(other.data)
    assert "has the control database of another" in other.refused("move", "--to", url)
    assert "there is no hot log" in Folder(tmp_path / "none", "").refused("move", "--to", url)
