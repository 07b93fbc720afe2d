"""Errors of AI agents and bots are stored once in `daily_errors`, and are never page views."""

import shutil
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.warehouse.site import DAY, NOON, Row, Site, die_at, key, some_rows, view
from warehouse.hotlog import batches
from warehouse.integrity import durability
from warehouse.maintenance import catch_up, compact, erase
from warehouse.query import sql
from warehouse.tables import DAILY_ERRORS_TABLE, HITS_TABLE

LOAD = "load.load(hot, root, 10, on_point)"


def error(number: int, **columns: Any) -> Row:
    """Return the row of an error of GPTBot, unless `columns` name another agent."""
    row = {"path": f"/gone/{number % 3}", "traffic": "ai", "agent": "GPTBot", "rule": "ai:GPTBot", "status": 404}
    return view(**{**row, "ts": NOON + number * timedelta(seconds=1), "event_id": f"error-{number:06d}", **columns})


def errors_of(site: Site) -> Counter[tuple[Any, ...]]:
    """Return the requests of each key, from the view `errors`: files and hot rows."""
    with sql.run_query(site.root.parent, "SELECT date, path, traffic, agent, status, requests FROM errors") as rows:
        counts: Counter[tuple[Any, ...]] = Counter()
        for *columns, requests in (row.values() for row in rows.read_all().to_pylist()):
            counts[tuple(columns)] += requests
        return counts


def expected(errors: list[Row]) -> Counter[tuple[Any, ...]]:
    columns = ("path", "traffic", "agent", "status")
    return Counter((row["ts"].date(), *(row[name] for name in columns)) for row in errors)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    opened = Site(tmp_path)
    (opened.root / "agents.parquet").write_bytes(b"")
    from ingest.classification import agents  # noqa: PLC0415
    from warehouse.lake import agents_file  # noqa: PLC0415

    agents_file.write_agents(opened.root, agents.rows())
    return opened


@pytest.mark.long
@pytest.mark.parametrize("step", catch_up.POINTS)
def test_errors_of_a_batch_are_counted_once_after_a_loader_was_killed_at_any_step(site: Site, step: str) -> None:
    views, errors = some_rows(0, 6), [error(number) for number in range(5)]
    site.post(*views[:3], *errors[:2])
    site.stage([*views[3:], *errors[2:]])
    assert errors_of(site) == expected(errors)
    die_at(site, LOAD, step)
    assert errors_of(site) == expected(errors)
    site.post(error(9))
    site.load()
    assert errors_of(site) == expected([*errors, error(9)])
    assert site.event_ids() == [row["event_id"] for row in views]
    assert site.daily_views() == Counter(map(key, views))
    assert site.state(DAILY_ERRORS_TABLE).offset == batches.last_id(site.hot)
    assert site.faults() == []
    site.close()


def test_only_ai_agents_and_bots_have_errors(site: Site) -> None:
    person = view(status=404, event_id="person")
    last_success = error(0, status=399, event_id="last-success")
    unknown = error(0, status=600, event_id="unknown-status")
    site.post(
        person, last_success, unknown, error(1, status=400), error(2, status=503, traffic="bot", agent="Googlebot")
    )
    for _ in range(2):
        assert errors_of(site) == expected(
            [error(1, status=400), error(2, status=503, traffic="bot", agent="Googlebot")]
        )
        site.load()
    assert site.event_ids() == ["last-success", "person", "unknown-status"]
    site.close()


def test_paths_of_unnamed_bots_http_libraries_and_spoofed_agents_are_omitted(site: Site) -> None:
    unnamed = [error(number, traffic="bot", agent=None, rule="bot:empty") for number in range(9)]
    spoofed = [error(number, traffic="bot", rule="bot:spoofed:GPTBot") for number in range(8)]
    library = error(0, traffic="bot", agent="curl", rule="bot:http-library:curl")
    site.post(*unnamed[:4], *spoofed[:4], library)
    site.stage([*unnamed[4:], *spoofed[4:]])
    day = NOON.date()
    totals = {
        (day, None, "bot", None, 404): 9,
        (day, None, "bot", "GPTBot", 404): 8,
        (day, None, "bot", "curl", 404): 1,
    }
    assert errors_of(site) == totals
    site.load()
    assert errors_of(site) == totals
    site.close()


def test_times_of_the_first_and_last_request_survive_compaction_and_a_vacuum(site: Site) -> None:
    for number in (3, 9, 6):
        site.post(error(number))
        site.load()
    site.compact()
    site.age()
    compact.vacuum(site.hot, site.root, 0)
    [row] = site.stored(DAILY_ERRORS_TABLE)
    assert (row["requests"], row["month"]) == (3, "2026-09")
    assert [row["first_seen"], row["last_seen"]] == [NOON + number * timedelta(seconds=1) for number in (3, 9)]
    assert len(list((site.root / "daily_errors").glob("month=*/*.parquet"))) == 1
    assert site.faults() == []
    site.close()


def test_erasures_remove_errors_on_days_without_a_page_view_too(site: Site) -> None:
    site.post(error(0), error(1, ts=NOON - 40 * DAY), error(2, ts=NOON - 11 * DAY), error(3, project_id="other"))
    site.load()
    assert erase.erase_before(site.hot, site.root, NOON.date(), 10, 0) == 0
    assert errors_of(site) == expected([error(0), error(3)])
    erase.erase_hits(site.hot, site.root, site.share, erase.Chosen("site"), 0)
    assert [row["project_id"] for row in site.stored(DAILY_ERRORS_TABLE)] == ["other"]
    site.close()


def test_lake_of_an_older_release_gets_the_table_without_the_rows_that_are_in_hits(site: Site) -> None:
    site.post(view(event_id="loaded"))
    site.load()
    shutil.rmtree(site.root / "daily_errors")
    site.hot.execute("DELETE FROM synced_tables WHERE name = 'daily_errors'")
    site.post(error(1))
    assert durability.find_losses(site.hot, site.root) == {}
    assert errors_of(site) == expected([error(1)])
    assert site.faults() == []
    assert not (site.root / "daily_errors").exists()
    durability.prepare(site.hot, site.root)
    assert site.state(DAILY_ERRORS_TABLE).offset == site.state(HITS_TABLE).offset == 1
    site.load()
    assert errors_of(site) == expected([error(1)])
    assert {site.state(spec).offset for spec in (HITS_TABLE, DAILY_ERRORS_TABLE)} == {2}
    assert site.faults() == []
    site.close()


def test_doctor_finds_an_error_of_a_person(site: Site) -> None:
    site.post(error(0))
    site.load()
    site.table(DAILY_ERRORS_TABLE).update(updates={"traffic": "'human'"})
    assert site.faults() == ["1 time, the first: site 2026-09-15 /gone/0"]
    site.close()
