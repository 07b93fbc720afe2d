"""User agents are those of the last 7 UTC days of a range, each with the rule that decided."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest
from hypothesis import given, settings

from tests.rounds import rounds
from tests.warehouse.report.lake import Lake
from tests.warehouse.report.laws import generated, model
from tests.warehouse.report.laws.generated import NOW
from tests.warehouse.site import DAY, NOON, Site, view
from warehouse.columns.filters import Filters
from warehouse.query.time_range import FIRST
from warehouse.report.reports import Reports
from warehouse.report.results import Query

GPT = {"traffic": "ai", "agent": "GPTBot", "rule": "ai:GPTBot"}
MIDNIGHT = NOON - timedelta(hours=12)
MICROSECOND = timedelta(microseconds=1)
WITHOUT_FILTER = Query("site", FIRST, None, Filters(), NOON)


@pytest.mark.parametrize("is_loaded", [False, True], ids=["hot", "loaded"])
def test_most_frequent_user_agents_of_a_class_are_first(site: Site, reports: Reports, is_loaded: bool) -> None:
    site.post(
        *(view(ts=NOON - number * DAY, user_agent="GPTBot/1.2", **GPT) for number in range(1, 4)),
        *(view(ts=NOON - DAY, user_agent=f"GPTBot/1.{version}", **GPT) for version in (1, 0, 0)),
        view(ts=MIDNIGHT - 6 * DAY, user_agent="first", traffic="ai", rule="ai:markdown"),
        view(ts=MIDNIGHT - 6 * DAY - MICROSECOND, user_agent="before", **GPT),
        view(ts=NOON - DAY, user_agent="Firefox/1"),
        view(ts=NOON - DAY, user_agent="", traffic="bot", rule="bot:empty"),
    )
    if is_loaded:
        site.load()

    def listed(query: Query, traffic: str | None, limit: int = 10) -> list[tuple[str | int | None, ...]]:
        return [tuple(row.values()) for row in reports.user_agents(reports.take(), query, traffic, limit).to_pylist()]

    ai = [
        ("GPTBot/1.2", "ai:GPTBot", "GPTBot", 3),
        ("GPTBot/1.0", "ai:GPTBot", "GPTBot", 2),
        ("GPTBot/1.1", "ai:GPTBot", "GPTBot", 1),
        ("first", "ai:markdown", None, 1),
    ]
    assert listed(WITHOUT_FILTER, "ai") == ai
    assert listed(WITHOUT_FILTER, "ai", 2) == ai[:2]
    assert listed(WITHOUT_FILTER, "bot") == [("", "bot:empty", None, 1)]
    assert listed(WITHOUT_FILTER, "human") == [("Firefox/1", "human", None, 1)]
    assert len(listed(WITHOUT_FILTER, None)) == 6
    assert listed(replace(WITHOUT_FILTER, filters=Filters(agent="GPTBot")), "ai") == ai[:3]
    assert listed(replace(WITHOUT_FILTER, end=MIDNIGHT - 6 * DAY), "ai") == [("before", "ai:GPTBot", "GPTBot", 1)]


@pytest.mark.long
@settings(max_examples=rounds(100))
@given(chance=generated.chances)
def test_user_agents_are_those_of_a_plain_count(lake: Lake, chance: Random) -> None:
    query, traffic, limit = lake.query(chance), chance.choice([None, *model.TRAFFIC]), chance.choice([1, 3, 99])
    table = lake.reports.user_agents(lake.reports.take(), query, traffic, limit)
    last = min((query.end or NOW) - MICROSECOND, NOW).date()
    views = Counter(
        (row["user_agent"], row["rule"], row["agent"])
        for row in model.matching(lake.rows, query)
        if (last - row["ts"].date()).days < 7 and traffic in {None, row["traffic"]}
    )
    ranked = sorted(views, key=lambda each: (-views[each], each[0], each[1], each[2] is None, each[2] or ""))
    assert [tuple(row.values()) for row in table.to_pylist()] == [(*each, views[each]) for each in ranked[:limit]]
