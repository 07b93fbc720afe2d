"""The list of agents has the views and the last day of each AI agent and bot in a range."""

from collections import Counter
from datetime import date, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from tests.rounds import rounds
from tests.warehouse.report.lake import Lake
from tests.warehouse.report.laws import generated, model
from tests.warehouse.site import DAY, NOON, Row, Site, view
from warehouse.columns.filters import Filters
from warehouse.query.time_range import FIRST, LAST
from warehouse.report.reports import Reports
from warehouse.report.results import Query

GPT = {"traffic": "ai", "agent": "GPTBot", "operator": "OpenAI", "purpose": "training"}
CLAUDE = {"traffic": "ai", "agent": "ClaudeBot", "operator": "Anthropic", "purpose": "training"}
GOOGLE = {"traffic": "bot", "agent": "Googlebot"}
LISTED = ("agent", "operator", "purpose", "traffic")


def test_each_agent_has_its_views_and_the_day_of_the_last_one(site: Site, reports: Reports) -> None:
    site.post(
        *(view(f"/{number}", NOON - 3 * DAY, **GPT) for number in range(3)),
        *(view("/", NOON - number * DAY, **CLAUDE) for number in (1, 5)),
        view("/", NOON - 2 * DAY),
        view("/", NOON - 2 * DAY, **GOOGLE),
        view("/", NOON + DAY, **GOOGLE),
        view("/", NOON - timedelta(seconds=1), traffic="ai"),
        view("/", NOON, project_id="another", **GPT),
    )
    rows = reports.agents(reports.take(), Query("site", FIRST, None, Filters(), NOON)).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        ("GPTBot", "OpenAI", "training", "ai", 3, date(2026, 9, 12)),
        ("ClaudeBot", "Anthropic", "training", "ai", 2, date(2026, 9, 14)),
        ("Googlebot", None, None, "bot", 1, date(2026, 9, 13)),
        (None, None, None, "ai", 1, date(2026, 9, 15)),
    ]


def test_project_without_agents_has_an_empty_list(site: Site, reports: Reports) -> None:
    site.post(view())
    rows = reports.agents(reports.take(), Query("site", FIRST, LAST, Filters(), NOON))
    assert (rows.num_rows, rows.column_names) == (0, [*LISTED, "views", "last_day"])


@pytest.mark.long
@settings(max_examples=rounds(150))
@given(chance=generated.chances)
def test_agents_are_those_of_a_plain_count(lake: Lake, chance: Random) -> None:
    query = lake.query(chance)
    listed = lake.reports.agents(lake.reports.take(), query).to_pylist()
    assert [tuple(row.values()) for row in listed] == agents_of(model.matching(lake.rows, query))


def agents_of(rows: list[Row]) -> list[tuple[Any, ...]]:
    automated = [row for row in rows if row["traffic"] != "human"]
    views = Counter(tuple(row[name] for name in LISTED) for row in automated)
    last = {tuple(row[name] for name in LISTED): row["ts"].date() for row in sorted(automated, key=_ts)}
    listed = [(*agent, count, last[agent]) for agent, count in views.items()]
    return sorted(listed, key=lambda row: (-row[4], row[0] is None, row[0] or "", row[3]))


def _ts(row: Row) -> Any:
    return row["ts"]
