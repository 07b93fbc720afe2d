"""Visits that AI products sent are views by people with the product's host as their referrer, or with its campaign."""

from collections import Counter, defaultdict
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings

from tests.rounds import rounds
from tests.warehouse.report.lake import Lake
from tests.warehouse.report.laws import generated, model
from tests.warehouse.site import DAY, NOON, Site, view
from warehouse.columns.filters import Filters
from warehouse.query.time_range import FIRST
from warehouse.report.reports import Reports
from warehouse.report.results import Query

OPERATORS = {"chatgpt.com": "OpenAI", "www.chatgpt.com": "OpenAI", "claude.ai": "Anthropic", "x.example": "None"}
WITHOUT_FILTER = Query("site", FIRST, None, Filters(), NOON)
CAMPAIGNS = {"chatgpt.com": "OpenAI", "perplexity": "Perplexity"}
GENERATED = {"example.com": "A", "t.co": "A", "日本.example": "B", "none.example": "C"}
GENERATED_CAMPAIGNS = {"newsletter": "B", "": "D", "none": "C"}


@pytest.mark.parametrize("is_loaded", [False, True], ids=["hot", "loaded"])
def test_visits_of_people_are_counted_for_the_operator_of_the_referrer(
    site: Site, reports: Reports, is_loaded: bool
) -> None:
    site.post(
        view("/a", NOON - DAY, referrer_host="chatgpt.com"),
        view("/b", NOON - DAY, referrer_host="www.chatgpt.com"),
        view("/a", NOON - 9 * DAY, referrer_host="claude.ai"),
        view("/a", NOON - DAY, referrer_host="chatgpt.com", traffic="ai", operator="OpenAI"),
        view("/a", NOON - DAY, referrer_host="not-chatgpt.com"),
        view("/a", NOON - DAY, referrer_host="chatgpt.com", project_id="another"),
        view("/a", NOON - DAY),
    )
    if is_loaded:
        site.load()
    snapshot = reports.take()
    assert reports.visits_sent(snapshot, WITHOUT_FILTER, OPERATORS, {}) == {"OpenAI": 2, "Anthropic": 1, "None": 0}
    of_ai = replace(WITHOUT_FILTER, start=NOON - 2 * DAY, filters=Filters(operator="OpenAI", traffic="ai", path="/a"))
    assert reports.visits_sent(snapshot, of_ai, OPERATORS, {}) == {"OpenAI": 1, "Anthropic": 0, "None": 0}


@pytest.mark.parametrize("is_loaded", [False, True], ids=["hot", "loaded"])
def test_campaign_of_a_product_counts_where_the_referrer_is_missing(
    site: Site, reports: Reports, is_loaded: bool
) -> None:
    site.post(
        view("/a", NOON - DAY, referrer_host="chatgpt.com", utm_source="chatgpt.com"),
        view("/a", NOON - DAY, utm_source="chatgpt.com"),
        view("/a", NOON - DAY, utm_source="chatgpt.com", traffic="bot"),
        view("/a", NOON - DAY, utm_source="perplexity"),
        view("/a", NOON - DAY, referrer_host="claude.ai", utm_source="mail"),
    )
    if is_loaded:
        site.load()
    assert reports.visits_sent(reports.take(), WITHOUT_FILTER, OPERATORS, CAMPAIGNS) == {
        "OpenAI": 2,
        "Anthropic": 1,
        "None": 0,
        "Perplexity": 1,
    }


@pytest.mark.long
@settings(max_examples=rounds(60))
@given(chance=generated.chances)
def test_visits_are_those_of_a_plain_count(lake: Lake, chance: Random) -> None:
    query = lake.query(chance)
    of_readers = dict.fromkeys(("traffic", "agent", "operator", "purpose", "verification"))
    rows = model.matching(lake.rows, replace(query, filters=query.filters.but(**of_readers)))
    by_operator, by_path = Counter[str](), defaultdict[str, Counter[str]](Counter)
    for row in rows:
        sender = GENERATED.get(row["referrer_host"]) or GENERATED_CAMPAIGNS.get(row["utm_source"])
        if sender and row["traffic"] == "human":
            by_operator[sender] += 1
            by_path[row["path"]][sender] += 1
    reports, products = lake.reports, (GENERATED, GENERATED_CAMPAIGNS)
    snapshot = reports.take()
    assert reports.visits_sent(snapshot, query, *products) == {each: by_operator[each] for each in "ABCD"}
    pages = reports.pages_sent(snapshot, query, *products, 1_000)
    assert pages is not None
    reads = Counter(row["path"] for row in model.matching(lake.rows, query) if row["traffic"] == "ai")
    if query.end is not None and query.end - query.start <= 31 * DAY:
        ordered = sorted(by_path, key=lambda path: (-by_path[path].total(), path))
        assert pages == [(path, by_path[path].total(), reads[path], by_path[path]) for path in ordered]


def test_pages_have_the_visits_of_the_last_days_of_a_long_range(site: Site, reports: Reports) -> None:
    sent = {"referrer_host": "chatgpt.com", "operator": None}
    site.post(
        *(view("/b", NOON - DAY, event_id=f"{number}", **sent) for number in range(2)),
        view("/b", NOON - DAY, referrer_host="claude.ai"),
        view("/a", NOON - DAY, utm_source="perplexity"),
        view("/a", NOON - DAY, traffic="ai", operator="OpenAI"),
        view("/c", NOON - 31 * DAY, **sent),
        view("/old", NOON - 32 * DAY, **sent),
    )
    snapshot = reports.take()
    expected = [("/b", 3, 0, ["OpenAI 2", "Anthropic 1"]), ("/a", 1, 1, ["Perplexity 1"]), ("/c", 1, 0, ["OpenAI 1"])]
    for limit in (10, 1):
        pages = reports.pages_sent(snapshot, WITHOUT_FILTER, OPERATORS, CAMPAIGNS, limit) or []
        senders = [[f"{name} {visits}" for name, visits in page.operators.items()] for page in pages]
        assert [(*page[:3], each) for page, each in zip(pages, senders, strict=True)] == expected[:limit]
