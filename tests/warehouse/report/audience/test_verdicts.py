"""Verdicts are counted by agent and state in all of a range, and by evidence in its last days."""

from collections import Counter
from datetime import timedelta
from random import Random

import pytest
from hypothesis import given, settings

from tests.rounds import rounds
from tests.warehouse.report.lake import STATES, Lake, settle
from tests.warehouse.report.laws import generated, model
from tests.warehouse.site import DAY, NOON, Site, view
from warehouse.columns.filters import Filters
from warehouse.query.time_range import FIRST
from warehouse.report.reports import Reports
from warehouse.report.results import Query

LIST = "list:openai-gptbot 2026-09-02"
GPT = {"agent": "GPTBot", "operator": "OpenAI", "purpose": "training"}
VERIFIED = {**GPT, "traffic": "ai", "verification": "verified", "verified_by": LIST}
SPOOFED = {"agent": "GPTBot", "traffic": "bot", "verification": "spoofed", "verified_by": LIST}
COLUMNS = ("agent", "operator", "purpose", "traffic", "verification")


@STATES
def test_states_are_of_the_whole_range_and_evidence_of_its_last_days(site: Site, reports: Reports, state: str) -> None:
    start, end = NOON - 20 * DAY, NOON + timedelta(hours=1)  # both cut a day
    site.post(
        *(view(ts=start - timedelta(microseconds=number), **VERIFIED) for number in range(3)),
        *(view(ts=NOON, **VERIFIED) for _ in range(4)),
        view(ts=end, **VERIFIED),
        *(view(ts=NOON - number * DAY, **SPOOFED) for number in (1, 8)),
        view(ts=NOON, **GPT, traffic="ai"),
        view(ts=NOON),
        view(ts=NOON, project_id="another", **VERIFIED),
    )
    settle(site, state)
    verdicts = reports.verdicts(reports.take(), Query("site", start, end, Filters(), NOON))
    assert [tuple(row.values()) for row in verdicts.states.to_pylist()] == [
        ("GPTBot", "OpenAI", "training", "ai", "verified", 5),
        ("GPTBot", None, None, "bot", "spoofed", 2),
        ("GPTBot", "OpenAI", "training", "ai", "not_checked", 1),
    ]
    assert [tuple(row.values()) for row in verdicts.evidence.to_pylist()] == [
        ("GPTBot", "OpenAI", "training", "ai", "verified", LIST, 4),
        ("GPTBot", None, None, "bot", "spoofed", LIST, 1),
    ]


def test_project_without_agents_has_no_verdict(site: Site, reports: Reports) -> None:
    site.post(view())
    verdicts = reports.verdicts(reports.take(), Query("site", FIRST, None, Filters(), NOON))
    assert (verdicts.states.column_names, verdicts.states.num_rows) == ([*COLUMNS, "views"], 0)
    assert (verdicts.evidence.column_names, verdicts.evidence.num_rows) == ([*COLUMNS, "verified_by", "views"], 0)


@pytest.mark.long
@settings(max_examples=rounds(60))
@given(chance=generated.chances)
def test_states_are_those_of_a_plain_count(lake: Lake, chance: Random) -> None:
    query = lake.query(chance)
    states = lake.reports.verdicts(lake.reports.take(), query).states.to_pylist()
    counted = Counter(
        (*(row[name] for name in COLUMNS[:-1]), row["verification"] or "not_checked")
        for row in model.matching(lake.rows, query)
        if row["traffic"] != "human"
    )
    assert {tuple(row[name] for name in COLUMNS): row["views"] for row in states} == counted
