"""Reports agree with the SQL views at each step of a rewrite of `hits`, and after it was killed."""

from collections import Counter
from collections.abc import Callable
from datetime import date
from typing import Any

import duckdb
import pytest

from tests.warehouse.maintenance.reclassification import steps as reclassification
from tests.warehouse.maintenance.reclassification.steps import run_reclassify
from tests.warehouse.site import DAY, NOON, Site, die_at, key, rank, view
from warehouse.lake.agents_file import write_agents
from warehouse.maintenance import catch_up, erase
from warehouse.query import sql
from warehouse.query.time_range import FIRST, LAST
from warehouse.report.reports import Reports

pytestmark = pytest.mark.long

ROWS = [
    view(f"/{user_agent[:1]}", ts=NOON - day * DAY, user_agent=user_agent, ruleset="old", project_id=project)
    for day in (0, 1, 20, 50)
    for user_agent in ("GPTBot/1", "ClaudeBot/1", "Firefox/1", "")
    for project in ("site", "goes")
]
"""Hits of three months. The current rules reclassify all of them except the human ones."""
RANGES = ((FIRST, None), (NOON - 20 * DAY, NOON), (NOON - 1.5 * DAY, NOON + 0.5 * DAY))
Rewrite = Callable[[Site, catch_up.OnPoint], object]
REWRITES: dict[str, Rewrite] = {
    "reclassify": lambda site, on_point: run_reclassify(site.hot, site.root, site.share, 0, on_point),
    "project": lambda site, on_point: erase.erase_hits(
        site.hot, site.root, site.share, erase.Chosen("goes"), 0, on_point
    ),
    "days": lambda site, on_point: erase.erase_before(site.hot, site.root, date(2026, 9, 15), 10, 0, on_point),
}
KILLED = {
    "reclassify": "from tests.warehouse.maintenance.reclassification.steps import run_reclassify\n"
    "run_reclassify(hot, root, share, 10, on_point)",
    "project": 'erase.erase_hits(hot, root, share, erase.Chosen("goes"), 10, on_point)',
}


def prepare(site: Site) -> None:
    write_agents(site.root, [])
    site.post(*ROWS[::2])
    site.load()
    site.post(*ROWS[1::2])


def counts(connection: duckdb.DuckDBPyConnection, table: str, number: str) -> Counter[tuple[Any, ...]]:
    rows = connection.sql(
        f"SELECT project_id, date, path, traffic, agent, {number}::BIGINT FROM {table} GROUP BY ALL"
    ).fetchall()
    return Counter({tuple(key): views for *key, views in rows})


def assert_consistent(site: Site, reports: Reports, expected_counts: Counter[tuple[Any, ...]] | None = None) -> None:
    """Check that the SQL views agree, and that reports over whole and partial days equal them."""
    with sql.connect(site.root.parent) as connection:
        hits = counts(connection, "hits", "count(*)")
        assert counts(connection, "daily_views", "sum(views)") == hits
        counted = connection.sql("SELECT project_id, path, traffic, ts FROM hits WHERE traffic <> 'bot'")
        instants = [tuple(row.values()) for row in counted.to_arrow_table().to_pylist()]
    assert expected_counts is None or hits == expected_counts
    for project in ("site", "goes"):
        for start, end in RANGES:
            exported = rank(reports, project, start, end, NOON + 2 * DAY).paths.to_pylist()
            expected = Counter(
                (path, traffic) for of, path, traffic, ts in instants if of == project and start <= ts < (end or LAST)
            )
            assert (
                +Counter({(row["path"], each): row[each] for row in exported for each in ("human", "ai")}) == expected
            )


@pytest.mark.parametrize(
    "rewrite", ["reclassify", *(pytest.param(each, marks=pytest.mark.night) for each in ("project", "days"))]
)
def test_reports_agree_with_the_views_at_each_step_of_a_rewrite(site: Site, reports: Reports, rewrite: str) -> None:
    steps = Counter[str]()

    def look(step: str) -> None:
        steps[step] += 1
        site.post(view("/hot", ts=NOON - 20 * DAY), view("/hot", ts=NOON))
        assert_consistent(site, reports)

    assert_consistent(site, reports, Counter(map(key, ROWS)))
    REWRITES[rewrite](site, look)
    assert steps.keys() == set(reclassification.POINTS if rewrite == "reclassify" else erase.POINTS)
    assert_consistent(site, reports)


@pytest.mark.night  # that the tables agree after each of these kills is tested with each rewrite
@pytest.mark.parametrize(
    ("rewrite", "step"),
    [(each, step) for each, of in (("reclassify", reclassification), ("project", erase)) for step in of.POINTS],
)
def test_reports_agree_with_the_views_after_a_rewrite_was_killed(
    site: Site, reports: Reports, rewrite: str, step: str
) -> None:
    die_at(site, KILLED[rewrite], step, passes=1)
    assert_consistent(site, reports)
    site.post(view("/hot", ts=NOON - 20 * DAY), view("/hot", ts=NOON - 2 * DAY), view("/hot", ts=NOON))
    assert_consistent(site, reports)
    die_at(site, "load.load(hot, root, 10, on_point)", "before commit of asset_loads")
    assert_consistent(site, reports)
    site.load()
    assert_consistent(site, reports)
    assert site.faults() == []
