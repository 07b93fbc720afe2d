"""Entries of the audit log, on SQLite and PostgreSQL: their order, their limits, the transaction of their change."""

import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from tests.stores import sql
from warehouse.control import audit, database, projects, source_policies
from warehouse.control.audit import ENTRIES_MAX, FAILURES_MAX, RETENTION_DAYS
from warehouse.database.pool import Pool
from warehouse.errors import InvalidProject, ProjectNotFound
from warehouse.folder import sqlite_url

ALONE = """
import sys
from warehouse.control import audit, database
print(audit.count(database.connect(sys.argv[1])))
"""


@pytest.fixture
def engine(database_url: str) -> Iterator[Pool]:
    engine = database.connect(database_url)
    for id in ("site", "other"):
        projects.create(engine, id, (), 0)
    yield engine
    engine.close()


def fill(engine: Pool, times_us: list[int]) -> None:
    values = "(id, at_us, action, detail) VALUES (:id, :at_us, 'signed in', '')"
    with engine.transaction() as connection:
        for number, at_us in enumerate(times_us):
            sql.execute(connection, f"INSERT INTO audit {values}", id=str(number), at_us=at_us)


def test_policy_is_recorded_in_the_transaction_that_sets_it_and_deleted_with_its_project(engine: Pool) -> None:
    before_s = time.time()
    source_policies.put(engine, "site", "log_only", date.min, "ada")
    source_policies.put(engine, "other", "beacon_only", date(2026, 9, 1))
    with pytest.raises(ProjectNotFound):
        source_policies.put(engine, "nowhere", "all", date.min, "ada")
    newest, oldest = audit.entries(engine, 0, 10)
    assert (oldest.who, oldest.action, oldest.project) == ("ada", "set the source policy", "site")
    assert (newest.who, newest.project) == (None, "other")
    assert [oldest.detail, newest.detail] == ["log_only for all days", "beacon_only for days from 2026-09-01"]
    assert before_s - 1e-3 <= oldest.at.timestamp() <= newest.at.timestamp() <= time.time()
    assert audit.entries(engine, 1, 1) == [oldest]
    projects.delete(engine, "site")
    assert audit.entries(engine, 0, 10) == [newest]


def test_origins_are_recorded_and_two_owners_who_allow_a_site_each_allow_both(engine: Pool) -> None:
    projects.set_origins(engine, "site", ("https://A.example/",), "ada")
    for by in ("bob", "ada", None):
        projects.allow_origin(engine, "site", "https://b.example" if by else "https://c.example", by)
    with pytest.raises(InvalidProject):
        projects.allow_origin(engine, "site", "d", "ada")
    with pytest.raises(ProjectNotFound):
        projects.set_origins(engine, "nowhere", (), "ada")
    assert projects.find(engine, "site").origins == ("https://a.example", "https://b.example", "https://c.example")
    assert [(entry.who, entry.action, entry.detail) for entry in audit.entries(engine, 0, 10)] == [
        (None, "allowed a site", "https://c.example"),
        ("bob", "allowed a site", "https://b.example"),
        ("ada", "set the allowed sites", "https://a.example"),
    ]


def test_strangers_who_fail_to_sign_in_displace_only_entries_of_failures(engine: Pool) -> None:
    projects.set_origins(engine, "site", ())
    with engine.transaction() as connection:
        for _ in range(FAILURES_MAX + 5):
            audit.record(connection, None, "failed to sign in")
    assert audit.count(engine) == FAILURES_MAX + 1
    assert audit.entries(engine, FAILURES_MAX, 1)[0].detail == "none"


def test_failed_change_has_no_entry(engine: Pool) -> None:
    def change() -> None:
        with engine.transaction() as connection:
            audit.record(connection, "ada", "created an API key", "site", "ci")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        change()
    assert audit.count(engine) == 0


def test_entries_of_more_than_a_year_are_deleted(engine: Pool) -> None:
    now_us, year_us = time.time_ns() // 1_000, RETENTION_DAYS * 86_400 * 1_000_000
    fill(engine, [now_us - year_us - 1, now_us - year_us + 60_000_000])
    with engine.transaction() as connection:
        audit.record(connection, "ada", "signed in")
    assert [entry.who for entry in audit.entries(engine, 0, 10)] == ["ada", None]


@pytest.mark.long
def test_oldest_of_too_many_entries_are_deleted(engine: Pool) -> None:
    now_us = time.time_ns() // 1_000
    fill(engine, [now_us - n for n in range(ENTRIES_MAX)])
    with engine.transaction() as connection:
        audit.record(connection, "ada", "signed in", detail="x" * 1_000)
    assert audit.count(engine) == ENTRIES_MAX
    assert audit.entries(engine, 0, 1)[0].who == "ada"
    oldest_us = round(audit.entries(engine, ENTRIES_MAX - 1, 1)[0].at.timestamp() * 1e6)
    assert oldest_us == now_us - ENTRIES_MAX + 2


def test_table_is_created_by_a_process_that_imports_no_other_table(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ALONE, sqlite_url(tmp_path / "control.sqlite")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "0\n"
