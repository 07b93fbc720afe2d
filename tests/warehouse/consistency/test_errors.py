"""Errors of AI agents and bots are stored once, and are never page views."""

from collections import Counter
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.rounds import seeded, some
from tests.warehouse.site import DAY, NOON, Row, Site, key, some_rows, view
from warehouse.hotlog import batches
from warehouse.lake import agents_file
from warehouse.maintenance import catch_up, compact, erase
from warehouse.query import sql
from warehouse.tables import REQUESTS_TABLE

COUNTS = ("traffic", "kind", "status", "cache", "ms_below", "requests", "sized", "bytes", "source", "path", "errors")


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


def served(site: Site) -> tuple[Any, ...]:
    """Return the number of all requests, and their bytes."""
    with sql.run_query(site.root.parent, "SELECT sum(requests) AS requests, sum(bytes) AS bytes FROM requests") as rows:
        return tuple(rows.read_all().to_pylist()[0].values())


def expected(errors: list[Row]) -> Counter[tuple[Any, ...]]:
    columns = ("path", "traffic", "agent", "status")
    return Counter((row["ts"].date(), *(row[name] for name in columns)) for row in errors)


def prepare(site: Site) -> None:
    agents_file.write_agents(site.root, [])


@pytest.mark.long
def test_errors_and_requests_of_a_batch_are_counted_once_after_a_loader_was_killed_at_any_step(
    site: Site, tmp_path: Path
) -> None:
    views = [{**row, "source": "server", "status": 200, "bytes": 50} for row in some_rows(0, 6)]
    errors = [error(number) for number in range(5)]
    site.post(*views[:3], *errors[:2])
    site.stage([*views[3:], *errors[2:]])
    assert (errors_of(site), served(site)) == (expected(errors), (6, 300))
    copies = site.copies(tmp_path / "copies", site.load)[: len(catch_up.POINTS)]
    for _, folder in some(seeded(1), copies, 3):
        with closing(Site(folder, is_new=False)) as copied:
            assert (errors_of(copied), served(copied)) == (expected(errors), (6, 300))
            copied.post(error(9))
            copied.load()
            assert (errors_of(copied), served(copied)) == (expected([*errors, error(9)]), (6, 300))
            assert copied.event_ids() == [row["event_id"] for row in views]
            assert copied.daily_views() == Counter(map(key, views))
            assert copied.state(REQUESTS_TABLE).offset == batches.last_id(copied.hot)
            assert copied.faults() == []


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


def test_times_of_the_first_and_last_request_survive_compaction_and_a_vacuum(site: Site) -> None:
    for number in (3, 9, 6):
        site.post(error(number))
        site.load()
    site.compact()
    site.age()
    compact.vacuum(site.hot, site.root, 0)
    [row] = site.stored(REQUESTS_TABLE)
    assert (row["errors"], row["requests"], row["month"]) == (3, 0, "2026-09")
    assert [row["first_seen"], row["last_seen"]] == [NOON + number * timedelta(seconds=1) for number in (3, 9)]
    assert len(list((site.root / "requests").glob("month=*/*.parquet"))) == 1
    assert site.faults() == []


def test_erasures_remove_errors_on_days_without_a_page_view_too(site: Site) -> None:
    site.post(error(0), error(1, ts=NOON - 40 * DAY), error(2, ts=NOON - 11 * DAY), error(3, project_id="other"))
    site.load()
    assert erase.erase_before(site.hot, site.root, NOON.date(), 10, 0) == 0
    assert errors_of(site) == expected([error(0), error(3)])
    erase.erase_hits(site.hot, site.root, site.share, erase.Chosen("site"), 0)
    assert [row["project_id"] for row in site.stored(REQUESTS_TABLE)] == ["other"]


def test_requests_of_servers_are_counted_with_their_bytes_and_errors_once(site: Site) -> None:
    of_server = {"source": "server", "status": 200}
    sized = {**of_server, "bytes": 1_000, "duration_ms": 30, "cache": "hit"}
    unknown = [view(source="server"), view(source="beacon"), view()]
    site.post(
        *unknown,
        view(**sized),
        view(**sized),
        view(**of_server, path="/a.md"),
        error(1, source="server", status=503),
        error(2),
    )
    for _ in range(2):
        with sql.run_query(
            site.root.parent, f"SELECT {', '.join(COUNTS)} FROM requests ORDER BY ALL NULLS FIRST"
        ) as rows:
            assert [tuple(row.values()) for row in rows.read_all().to_pylist()] == [
                ("ai", "page", 404, None, None, 0, 0, 0, "log", "/gone/2", 1),
                ("ai", "page", 503, None, None, 1, 0, 0, "server", "/gone/1", 1),
                ("human", "markdown", 200, None, None, 1, 0, 0, "server", None, 0),
                ("human", "page", 200, "hit", 50, 2, 2, 2_000, "server", None, 0),
            ]
        site.load()
    assert site.faults() == []


def test_doctor_finds_an_error_of_a_person(site: Site) -> None:
    site.post(error(0))
    site.load()
    site.table(REQUESTS_TABLE).update(updates={"traffic": "'human'"})
    assert site.faults() == ["1 time, the first: site 2026-09-15 /gone/0"]
