"""Paths are counted once for each AI agent, or operator that read them in the last days of a range."""

from collections import defaultdict
from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest
from hypothesis import given, settings

from tests.rounds import rounds
from tests.warehouse.report.lake import Lake
from tests.warehouse.report.laws import generated, model
from tests.warehouse.report.laws.generated import NOW
from tests.warehouse.rollups.writing import write_rollup
from tests.warehouse.site import DAY, NOON, Site, view
from warehouse.columns.filters import Filters
from warehouse.query.time_range import FIRST
from warehouse.report.reports import AGENT_PAGES_DAYS as DAYS
from warehouse.report.reports import Reports
from warehouse.report.results import Query
from warehouse.tables import HITS_TABLE

GPT = {"traffic": "ai", "agent": "GPTBot", "operator": "OpenAI", "purpose": "training"}
USER = {"traffic": "ai", "agent": "ChatGPT-User", "operator": "OpenAI", "purpose": "assistant"}
GOOGLE = {"traffic": "bot", "agent": "Googlebot"}
MIDNIGHT = NOON - timedelta(hours=12)
MICROSECOND = timedelta(microseconds=1)
WITHOUT_FILTER = Query("site", FIRST, None, Filters(), NOON)


@pytest.mark.parametrize("loaded", [0, 3, 9])
def test_path_that_two_agents_of_an_operator_read_is_one_page_of_the_operator(
    site: Site, reports: Reports, loaded: int
) -> None:
    rows = [
        view("/a", NOON - DAY, **GPT),
        view("/b", NOON - DAY, **GPT),
        view("/a", NOON - 2 * DAY, **GPT),
        view("/a", NOON - DAY, **USER),
        view("/a", NOON - DAY, **GOOGLE),
        view("/people", NOON - DAY),
        view("/markdown", NOON - DAY, traffic="ai"),
        view("/first", MIDNIGHT - (DAYS - 1) * DAY, **GPT),
        view("/before", MIDNIGHT - (DAYS - 1) * DAY - MICROSECOND, **GPT),
    ]
    for some in (rows[:loaded], rows[loaded:]):
        if some:
            site.post(*some)
        if some == rows[:loaded]:
            site.load()
    snapshot = reports.take()
    assert reports.agent_pages(snapshot, WITHOUT_FILTER) == {"GPTBot": 3, "ChatGPT-User": 1}
    assert reports.agent_pages(snapshot, WITHOUT_FILTER, "operator") == {"OpenAI": 3}
    of_assistants = replace(WITHOUT_FILTER, filters=Filters(purpose="assistant"))
    assert reports.agent_pages(snapshot, of_assistants, "operator") == {"OpenAI": 1}


@pytest.mark.long
def test_path_with_many_reads_in_the_edge_that_is_subtracted_is_left_out(site: Site, reports: Reports) -> None:
    end = NOON - timedelta(minutes=30) + DAY / 2
    for path, before in (("/within", 1), ("/after", 0)):
        site.stage([view(path, end, **GPT)] * 300 + [view(path, end - 2 * MICROSECOND, **GPT)] * before)
    site.load()
    files = site.state(HITS_TABLE).files
    write_rollup(site.root, site.database, f"{NOON:%Y-%m}", files)
    query = Query("site", MIDNIGHT, end, Filters(), NOON + DAY)
    assert reports.agent_pages(reports.take(), query) == {"GPTBot": 1}
    assert reports.agent_pages(reports.take(), replace(query, end=end + MICROSECOND)) == {"GPTBot": 2}


@pytest.mark.long
@settings(max_examples=rounds(100))
@given(chance=generated.chances)
def test_pages_are_those_of_a_plain_count(lake: Lake, chance: Random) -> None:
    query = lake.query(chance)
    last = min((query.end or NOW) - MICROSECOND, NOW).date()
    rows = [row for row in model.matching(lake.rows, query) if (last - row["ts"].date()).days < DAYS]
    for by in ("agent", "operator"):
        paths = defaultdict(set)
        for row in rows:
            if row["traffic"] == "ai" and row[by] is not None:
                paths[row[by]].add(row["path"])
        expected = {value: len(each) for value, each in paths.items()}
        assert lake.reports.agent_pages(lake.reports.take(), query, by) == expected
