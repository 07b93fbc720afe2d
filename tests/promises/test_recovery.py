"""A hot log that is missing or older than the lake is refused, and `recover` continues without it."""

import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from tests.processes.running import PROJECT, Running
from tests.processes.waiting import until
from tests.promises.lost_stores import COUNT, LINE, Folder
from tests.warehouse.site import DAY, NOON, Site, view
from warehouse.errors import DataIncomplete, HotLogBehind
from warehouse.hotlog import batches, retention
from warehouse.lake import delta_table
from warehouse.lake.roots import LocalPath
from warehouse.maintenance import recovery
from warehouse.query import engine, sql
from warehouse.tables import TABLES

MISSING = "is missing or empty, and the lake beside it has hits"


def lose(folder: Folder) -> None:
    folder.lose("hot.sqlite")


def empty(folder: Folder) -> None:
    folder.lose("hot.sqlite")
    (folder.data / "hot.sqlite").touch()


def renew(folder: Folder) -> None:
    folder.lose("hot.sqlite")
    batches.connect(folder.data / "hot.sqlite").close()


def age(folder: Folder) -> None:
    folder.restore("hot.sqlite")


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (age, "is older than the lake, which has its batches up to 3; its own end at 1"),
        pytest.param(lose, MISSING, marks=pytest.mark.long),
        pytest.param(empty, MISSING, marks=pytest.mark.long),
        pytest.param(renew, "is new, and the lake beside it was filled from another one", marks=pytest.mark.long),
    ],
)
def test_every_command_refuses_a_hot_log_that_is_behind_the_lake_and_the_advice_counts_no_line_twice(
    folder: Folder, damage: Callable[[Folder], None], fault: str
) -> None:
    damage(folder)
    for command in (["serve", "--port", "0"], ["flush"], ["sql", COUNT], ["import", PROJECT, str(folder.log)]):
        assert f"{folder.data / 'hot.sqlite'} {fault}: restore the copy that is as new" in folder.refused(*command)
    assert folder.run("doctor").returncode == 1
    with pytest.raises(DataIncomplete, match=fault):
        sql.connect(folder.data)
    listed = folder.json("recover")
    assert [loss["fault"] for loss in listed] == [fault]
    assert fault in folder.refused("flush")  # the list changed nothing
    folder.json("recover", "--accept-loss")
    assert folder.counts() == (33, 33)
    assert "--despite-loss" in folder.refused("import", PROJECT, str(folder.log))
    assert folder.counts() == (33, 33)
    assert [finding["fault"] for finding in folder.json("doctor") if finding["fault"]] == []
    assert folder.json("recover") == []


@pytest.mark.long
def test_lines_newer_than_the_loss_are_imported_without_being_asked(folder: Folder) -> None:
    lose(folder)
    folder.json("recover", "--accept-loss")
    soon = f"{datetime.now(UTC) + timedelta(minutes=2):%d/%b/%Y:%H:%M}"  # after the loss, and accepted as a time
    lines = "".join(LINE.format(number, number) for number in range(5))
    folder.log.write_text(lines.replace("15/Sep/2026:12:00", soon))
    assert folder.json("import", PROJECT, str(folder.log))["page_views"] == 5
    folder.log.write_text(LINE.format(59, "old"))
    assert folder.json("import", "--despite-loss", PROJECT, str(folder.log))["page_views"] == 1
    assert folder.counts() == (39, 39)


def test_hot_log_whose_loss_was_accepted_is_refused_when_it_is_restored(folder: Folder) -> None:
    folder.copy("hot.sqlite")
    lose(folder)
    folder.json("recover", "--accept-loss")
    folder.restore("hot.sqlite")
    assert "was replaced by another hot log" in folder.refused("flush")
    folder.json("recover", "--accept-loss")  # accepts this hot log again, and the loss of the other
    assert folder.counts() == (33, 33)


def sent_event(running: Running, id: str) -> int:
    """Post an event, and return how many were accepted."""
    event = {"path": "/a", "name": "Signup", "eventId": id}
    answer = httpx.post(running.hits.replace("/hits", "/events"), json=event, headers=running.auth, timeout=60)
    return int(answer.json()["accepted"])


@pytest.mark.long
@pytest.mark.parametrize("damage", [lose, age])
def test_hits_and_event_ids_after_a_loss_are_counted_once(folder: Folder, damage: Callable[[Folder], None]) -> None:
    running = Running(folder.data, key=folder.key).start()
    assert running.post([{"path": "/a", "eventId": "one"}, {"path": "/a", "eventId": "two"}]).json()["accepted"] == 2
    sent = [sent_event(running, "one")]
    assert running.stop() == 0
    damage(folder)
    folder.json("recover", "--accept-loss")
    with closing(sqlite3.connect(folder.data / "hot.sqlite")) as hot:
        assert hot.execute("SELECT count(*) FROM seen_values").fetchone() == (1,)  # the page that beacons may also have
    running.start()
    answer = running.post([{"path": "/a", "eventId": "one"}, {"path": "/a", "eventId": "three"}]).json()
    assert (answer["accepted"], answer["duplicates"]) == (1, 1)
    assert [*sent, sent_event(running, "one"), sent_event(running, "three")] == [1, 0, 1]
    with sql.connect(folder.data) as database:
        assert database.execute("SELECT count(*) FROM hits").fetchone() == (36,)
    assert running.stop() == 0
    assert folder.counts() == (36, 36)


@pytest.mark.long
def test_batch_that_only_one_table_has_is_counted_once(folder: Folder) -> None:
    folder.copy("hot.sqlite")
    site = Site(folder.data)
    site.post(view("/half", event_id="half"))

    def stop(step: str) -> None:
        if step == "before commit of asset_loads":
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        site.load(stop)
    site.close()
    folder.restore("hot.sqlite")
    folder.json("recover", "--accept-loss")
    assert folder.counts() == (34, 34)
    assert [finding["fault"] for finding in folder.json("doctor") if finding["fault"]] == []


def test_acceptance_that_fails_before_the_moments_are_revoked_leaves_the_new_hot_log_refused(folder: Folder) -> None:
    renew(folder)
    file, root = folder.data / "hot.sqlite", folder.data / "lake"
    with (
        closing(batches.connect(file, busy_timeout_s=0)) as hot,
        closing(batches.connect(file)) as other,
        closing(engine.connect(folder.data / "run" / "spill")) as database,
    ):
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            recovery.accept_hot_log(hot, LocalPath(root), database, NOON)
    assert "is new, and the lake" in folder.refused("flush")
    folder.json("recover", "--accept-loss")
    assert folder.counts() == (33, 33)


@pytest.mark.long
def test_hits_accepted_after_an_older_copy_came_back_are_counted_and_those_of_the_copy_not_twice(
    folder: Folder,
) -> None:
    site = Site(folder.data)
    site.post(view("/waited/when/copied"))
    site.close()
    shutil.copy(folder.data / "hot.sqlite", folder.copies / "hot.sqlite")
    site = Site(folder.data)
    for _ in range(2):
        site.post(view("/in/the/lake/alone"))
    site.load()
    site.close()
    folder.restore("hot.sqlite")
    site = Site(folder.data)
    site.post(view("/after", received_at=NOON + DAY), view("/after", received_at=NOON + DAY))  # as 0.1.0 accepted them
    site.close()
    folder.json("recover", "--accept-loss")
    assert folder.counts() == (38, 38)
    assert [finding["fault"] for finding in folder.json("doctor") if finding["fault"]] == []


def test_reader_refuses_a_lake_that_became_newer_than_the_hot_log(folder: Folder) -> None:
    site = Site(folder.data)
    reports = site.reports()
    assert reports.fault() is None
    for spec in TABLES:
        table = site.table(spec)
        delta_table.append(table, spec.schema.empty_table(), batches.node_id(site.hot), 9)
    assert "is older than the lake, which has its batches up to 9" in str(reports.fault())
    with pytest.raises(HotLogBehind, match="readership recover"):
        site.load()
    reports.close()
    site.close()


@pytest.mark.long
def test_running_service_reports_a_lake_that_became_newer_and_logs_it_once(folder: Folder) -> None:
    environ = {"READERSHIP_LOAD_EVERY_S": "1", "READERSHIP_JOBS_AT_ONCE": "0"}
    running = Running(folder.data, key=folder.key, environ=environ).start()
    with closing(batches.connect(folder.data / "hot.sqlite")) as hot:
        for spec in TABLES:
            table = delta_table.open_table(LocalPath(folder.data / "lake"), spec)
            delta_table.append(table, spec.schema.empty_table(), batches.node_id(hot), 9)
    running.post({"path": "/a"})
    answer = httpx.get(running.views, headers=running.auth)
    assert (answer.status_code, answer.json()["type"]) == (503, "/docs#data-incomplete")
    until(lambda: 'readership_loads_total{outcome="failed"} 3' in httpx.get(f"{running.url}/metrics").text)
    ready = httpx.get(f"{running.url}/readyz")
    assert ready.status_code == 503
    assert "is older than the lake" in ready.json()["checks"]["hotLog"]
    log = running.log.read_text()
    assert log.count("maintenance failed") == 1
    assert "Traceback" not in log
    running.kill()


@pytest.mark.long
def test_table_that_broke_beside_a_missing_hot_log_is_listed_first_and_then_the_hot_log(folder: Folder) -> None:
    lose(folder)
    commit = folder.data / "lake" / "requests" / "_delta_log" / f"{1:020}.json"
    commit.write_bytes(b"")
    assert [loss["fault"] for loss in folder.json("recover")] == [f"{commit} is empty"]
    assert not (folder.data / "hot.sqlite").exists()
    folder.json("recover", "--accept-loss")
    assert [loss["store"] for loss in folder.json("recover")] == [str(folder.data / "hot.sqlite")]
    folder.json("recover", "--accept-loss")
    assert folder.json("recover") == []
    assert [finding["fault"] for finding in folder.json("doctor") if finding["fault"]] == []
    assert "--despite-loss" in folder.refused("import", PROJECT, str(folder.log))


@pytest.mark.parametrize(("is_expired", "hits"), [(False, 33), (True, 0)])
def test_missing_lake_has_the_hits_that_the_hot_log_retains_once_its_loss_is_accepted(
    folder: Folder, is_expired: bool, hits: int
) -> None:
    if is_expired:
        with closing(batches.connect(folder.data / "hot.sqlite")) as hot:
            retention.delete_due(hot, time.time() + retention.AS_OF_S, retention.RETAINED_BYTES_MAX)
    shutil.rmtree(folder.data / "lake")
    folder.json("recover", "--accept-loss")
    assert folder.json("sql", "SELECT count(*) AS hits FROM hits") == [{"hits": hits}]
    assert [finding["fault"] for finding in folder.json("doctor") if finding["fault"]] == []


@pytest.mark.long
def test_damaged_hot_log_is_named_in_one_line(folder: Folder) -> None:
    folder.lose("hot.sqlite")
    (folder.data / "hot.sqlite").write_bytes(b"garbage " * 4_000)
    for command in (["serve", "--port", "0"], ["sql", COUNT], ["recover"]):
        line = folder.refused(*command)
        assert line.startswith(f"Error: {folder.data / 'hot.sqlite'} cannot be read (file is not a database): restore")


@pytest.mark.long
@pytest.mark.parametrize("name", ["synced_tables", "batches", "read_logs"])
def test_hot_log_with_a_damaged_page_is_named_by_recover(folder: Folder, name: str) -> None:
    file = folder.data / "hot.sqlite"
    with closing(sqlite3.connect(file)) as hot:
        (page,) = hot.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()
        (size,) = hot.execute("PRAGMA page_size").fetchone()
    content = bytearray(file.read_bytes())
    content[(page - 1) * size : page * size] = b"\xff" * size
    file.write_bytes(content)
    line = folder.refused("recover")
    assert line.startswith(f"Error: {file} cannot be read ("), line
    assert "move it out of the folder and run readership recover" in line
    if name == "batches":
        assert folder.refused("flush").endswith("malformed; readership recover checks whether the hot log is damaged\n")
        started = folder.run("serve", "--port", "0")
        assert started.returncode != 0
        assert "Traceback" not in started.stderr
        assert f"{file} cannot be read (database disk image is malformed)" in started.stderr


def test_identity_of_a_hot_log_that_is_no_text_is_damage(folder: Folder) -> None:
    file = folder.data / "hot.sqlite"
    with closing(sqlite3.connect(file)) as hot:
        hot.execute("UPDATE node SET id = CAST(x'ff' AS TEXT)")
        hot.commit()
    assert folder.refused("serve", "--port", "0").startswith(f"Error: {file} cannot be read (Could not decode")
