"""The AI readers: numbers of the API, visits sent back, states by robots.txt, and what is not known or not set up."""

import csv
import io
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from api.dashboard.robots import texts
from tests.api.dashboard.days import before
from tests.api.dashboard.html import Html
from tests.api.dashboard.pages.reading.ai.ai_traffic import (
    ATTACK,
    FIREFOX,
    QUERIES,
    UNKNOWN,
    WRONG,
    api_query,
    numbers,
    open_page,
)
from tests.api.dashboard.site import Dashboard, opened
from tests.processes.running import PROJECT, new_key

OPERATOR_OF = {"GPTBot": "OpenAI", "ChatGPT-User": "OpenAI", "ClaudeBot": "Anthropic", "CCBot": "Common Crawl"}
MINUS = "\N{MINUS SIGN}"
HOSTS = {"OpenAI": ("chatgpt.com",), "Anthropic": ("claude.ai",), "Perplexity": ("www.perplexity.ai",)}
READS, PURPOSES, VISITS, PER_VISIT = 1, 2, -2, -1
"""Columns of the table."""
NAMES = re.compile("|".join(sorted({*OPERATOR_OF, *OPERATOR_OF.values()}, key=len, reverse=True)))


def rows_of(page: Html) -> dict[str, list[str]]:
    """Return the rows of the table by the names of operators and agents. A name is not all of its cell."""
    rows = page.rows("Operators and their agents")
    return {name[0]: row for row in rows if (name := NAMES.match(row[0]))}


def in_api(dashboard: Dashboard, report: str) -> dict[str, int]:
    rows: list[dict[str, Any]] = dashboard.get_report(report)["rows"]
    return {row["value"]: row["ai"] for row in rows}


@pytest.mark.long
@pytest.mark.parametrize(("parameters", "expected"), QUERIES, ids=str)
def test_reads_are_those_of_the_api(
    read_site: Dashboard, reader: TestClient, parameters: dict[str, str | int], expected: dict[str, str | int]
) -> None:
    query = f"traffic=ai&limit=100&{api_query(expected)}"
    table = rows_of(open_page(reader, "/ai", **parameters))
    for by in ("operator", "agent"):
        counts = in_api(read_site, f"breakdown?by={by}&{query}")
        assert counts, query
        assert {name: numbers([table[name][READS]])[0] for name in counts} == counts
    purposes = in_api(read_site, f"breakdown?by=purpose&{query}")
    operators = [row for name, row in table.items() if name in OPERATOR_OF.values()]
    shown = Counter[str]()
    for row in operators:
        shown.update({name: int(count) for name, count in re.findall(r"([A-Z][a-z ]+) (\d+)", row[PURPOSES])})
    names = {"training": "Training", "assistant": "Answers a person"}
    assert shown == {names[purpose]: count for purpose, count in purposes.items()}


@pytest.mark.long
@pytest.mark.parametrize(("parameters", "expected"), QUERIES[:2] + QUERIES[8:], ids=str)
def test_pages_and_visits_are_those_of_the_api(
    read_site: Dashboard, reader: TestClient, parameters: dict[str, str | int], expected: dict[str, str | int]
) -> None:
    query = f"limit=250&{api_query(expected)}"
    table = rows_of(open_page(reader, "/ai", **parameters))
    people = read_site.get_report(f"breakdown?by=referrerHost&traffic=human&{query}")["rows"]
    by_host = {row["value"]: row["human"] for row in people}
    for agent in {*OPERATOR_OF} & {*table}:
        paths = read_site.get_report(f"breakdown?by=path&agent={agent}&{query}")["rows"]
        assert table[agent][-1].startswith(f"{len(paths)} page")
    for operator, hosts in HOSTS.items():
        if operator in table:
            visits = sum(by_host.get(host, 0) for host in hosts)
            assert numbers([table[operator][VISITS]]) == [visits]
            per_visit = numbers([table[operator][READS]])[0] / visits if visits else None
            assert table[operator][PER_VISIT] == (
                UNKNOWN if per_visit is None else f"{per_visit:.1f}".removesuffix(".0")
            )


@pytest.mark.long
@pytest.mark.parametrize("operator", [None, "Anthropic"])
def test_pages_have_the_visits_by_products(read_site: Dashboard, reader: TestClient, operator: str | None) -> None:
    senders: defaultdict[str, Counter[str]] = defaultdict(Counter)
    query = f"limit=100&dateFrom={before(29)}"
    for name, hosts in {operator: HOSTS[operator]}.items() if operator else HOSTS.items():
        for host in hosts:
            rows = read_site.get_report(f"breakdown?by=path&traffic=human&referrerHost={host}&{query}")["rows"]
            for row in rows:
                senders[row["value"]][name] += row["human"]
    visits = {path: of.total() for path, of in senders.items()}
    filters = {"operator": operator} if operator else {}
    of_operator = "".join(f"&{name}={value}" for name, value in filters.items())
    reads = in_api(read_site, f"breakdown?by=path&traffic=ai&{query}{of_operator}")
    ordered = sorted(visits, key=lambda path: (-visits[path], path))
    expected = [[f"{path}{_ranked(senders[path])}", reads.get(path, 0), visits[path]] for path in ordered]
    overview = Html(reader.get(f"/projects/{PROJECT}", params=filters).text)
    for page in (open_page(reader, "/ai", **filters), overview):
        rows = page.rows("Pages that AI sends visits to")
        assert sorted([row[0], *numbers(row[1:3])] for row in rows) == sorted(expected[:8])
        assert [row[2] for row in rows] == [f"{count}" for _, _, count in expected[:8]]
    assert f"Visits from AI {sum(visits.values())} " in overview.text
    most_read = open_page(reader, "/ai", **filters).rows("Pages that AI reads most")
    assert [int(row[1]) for row in most_read] == sorted(reads.values(), reverse=True)[:8]
    assert {row[0]: int(row[1]) for row in most_read}.items() <= reads.items()


def _ranked(counts: Counter[str]) -> str:
    """Return the names with their counts, the largest first."""
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items(), key=lambda each: (-each[1], each[0])))


def test_operator_without_a_product_that_sends_visits_has_no_number_of_visits(reader: TestClient) -> None:
    row = rows_of(open_page(reader, "/ai"))["Common Crawl"]
    assert row[VISITS] == "not known"


@pytest.mark.long
def test_visits_of_an_operator_that_reads_nothing_are_named(read_site: Dashboard, reader: TestClient) -> None:
    page = open_page(reader, "/ai")
    people = read_site.get_report(f"breakdown?by=referrerHost&traffic=human&dateFrom={before(29)}")["rows"]
    by_host = {row["value"]: row["human"] for row in people}
    perplexity = by_host["www.perplexity.ai"]
    assert f"Visits from AI products whose operators read no page in this period: Perplexity {perplexity}." in page.text
    visits = perplexity + by_host["chatgpt.com"] + by_host["claude.ai"]
    assert f"Agents 4 Visits from AI {visits} Hours" in page.text
    assert f"reads and sent {by_host['chatgpt.com'] + by_host['claude.ai']} of {visits} visits from AI." in page.text
    narrow = open_page(reader, "/ai", operator="OpenAI").text
    assert f"Agents 2 Visits from AI {by_host['chatgpt.com']} Hours" in narrow
    assert "read no page" not in narrow


@pytest.mark.long
def test_compared_period_is_in_the_chart(read_site: Dashboard, reader: TestClient) -> None:
    series = read_site.get_report(f"series?traffic=ai&dateFrom={before(13)}&dateTo={before(6)}")["series"]
    rows = open_page(reader, "/ai", period="7d", compare="previous").rows("Numbers of this chart")
    assert [numbers(row[2:]) for row in rows][:6] == [[row["ai"]] for row in series][:6]


@pytest.mark.long
def test_compared_rows_have_their_change(read_site: Dashboard, reader: TestClient) -> None:
    query = f"traffic=ai&dateFrom={before(20)}&dateTo={before(10)}"
    parameters = {"from": 10, "to": 1, "compare": "previous"}
    page = open_page(reader, "/ai", **parameters)
    at = page.tables["Operators and their agents"][0].index("Change")
    for by in ("operator", "agent"):
        was = in_api(read_site, f"breakdown?by={by}&{query}")
        for name, row in rows_of(page).items():
            if name in was:
                now = numbers([row[READS]])[0]
                sign = "+" if now > was[name] else MINUS if now < was[name] else ""
                assert row[at] == f"{sign}{abs(now - was[name]) / was[name]:.0%} from {was[name]}"
    assert "Change" not in open_page(reader, "/ai").tables["Operators and their agents"][0]
    unknown = rows_of(open_page(reader, "/ai", compare="previous"))
    assert {row[at] for row in unknown.values()} == {UNKNOWN}


def test_chart_and_purposes_are_of_ai_alone(read_site: Dashboard, reader: TestClient) -> None:
    series = read_site.get_report(f"series?traffic=ai&dateFrom={before(29)}")
    page = open_page(reader, "/ai")
    assert [numbers(row[1:]) for row in page.rows("Numbers of this chart")] == [[row["ai"]] for row in series["series"]]
    purposes = in_api(read_site, f"breakdown?by=purpose&traffic=ai&dateFrom={before(29)}")
    assert f"Training {purposes['training']}" in page.text
    assert f"Answers a person {purposes['assistant']}" in page.text


@pytest.mark.long
def test_each_operator_has_a_sparkline_of_days_or_months(reader: TestClient) -> None:
    for period, interval in (("today", "day"), ("90d", "day"), ("all", "month")):
        page = open_page(reader, "/ai", period=period)
        assert page.text.count(f"Reads by {interval}") == len({*OPERATOR_OF.values()} & rows_of(page).keys())


def test_first_operators_are_named_only_if_there_are_others(dashboard: Dashboard) -> None:
    agents = [
        "GPTBot/1.3",
        "GPTBot/1.3",
        "ClaudeBot/1.0",
        "ClaudeBot/1.0",
        "CCBot/2.0",
        "CCBot/2.0",
        "PerplexityBot/1.0",
    ]
    hits = [{"path": "/", "userAgent": name} for name in agents]
    dashboard.post_hits(*hits, project="summed", key=new_key(dashboard.data, "summed"))
    viewer = dashboard.visitor("viewer")
    text, of_one = (Html(viewer.get(f"/projects/summed/ai{query}").text).text for query in ("", "?operator=OpenAI"))
    assert "Anthropic, Common Crawl and OpenAI made 6 of 7 reads. " in text
    assert (" of 2 reads" in of_one, "OpenAI" in of_one) == (False, True)


def test_filter_of_a_click_is_a_chip_and_limits_the_table(reader: TestClient) -> None:
    page = open_page(reader, "/ai", operator="OpenAI", traffic="human")
    assert rows_of(page).keys() == {"OpenAI", "GPTBot", "ChatGPT-User"}
    assert "Operator: OpenAI" in page.text
    assert "Readers:" not in page.text
    assert sum("traffic=" in link for link in page.links()) == 7  # only the tabs, for pages that count all readers


def test_csv_has_the_rows_of_the_table(reader: TestClient) -> None:
    table = rows_of(open_page(reader, "/ai"))
    response = reader.get(f"/projects/{PROJECT}/ai.csv")
    assert response.headers["content-type"].startswith("text/csv")
    assert f'filename="{PROJECT}-ai-' in response.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(response.text)))
    assert [row["agent"] or row["operator"] for row in rows] == list(table)
    for row in rows:
        shown = table[row["agent"] or row["operator"]]
        assert row["reads"] == shown[READS]
        if row["agent"]:
            assert shown[-1].startswith(f"{row['pages']} page")
        else:
            assert row["visits_sent"] == shown[VISITS].replace("not known", "")


@pytest.mark.long
def test_wrong_parameter_is_named(reader: TestClient) -> None:
    for query, sentence in WRONG:
        name, _, value = query.partition("=")
        assert sentence in open_page(reader, "/ai", 400, **{name: value}).text
        assert reader.get(f"/projects/{PROJECT}/ai.csv?{query}").status_code == 400


def test_attack_by_a_filter_is_text(reader: TestClient) -> None:
    assert ATTACK in open_page(reader, "/ai", operator=ATTACK).text


@pytest.fixture
def _text(read_site: Dashboard) -> Iterator[None]:
    content = "User-agent: *\nDisallow: /admin\n\nUser-agent: GPTBot\nUser-agent: KimiBot\nDisallow: /\n"
    texts.save(read_site.engine, PROJECT, content + "\nUser-agent: CCBot\nDisallow:\n", 1_790_000_000)
    yield
    for text in texts.versions(read_site.engine, PROJECT):
        texts.remove(read_site.engine, PROJECT, text.since_s)


def test_without_a_text_the_page_offers_to_add_it(read_site: Dashboard, reader: TestClient) -> None:
    assert "An owner can add it." in open_page(reader, "/ai").text
    assert f"/projects/{PROJECT}/ai/robots" in open_page(read_site.visitor("owner"), "/ai").links()


@pytest.mark.usefixtures("_text")
def test_numbers_have_the_names_of_their_columns_for_narrow_windows(reader: TestClient) -> None:
    page = open_page(reader, "/ai")
    labels = {attributes["data-label"] for tag, attributes in page.tags if tag == "td" and "data-label" in attributes}
    assert labels == set(page.tables["Operators and their agents"][0][1:])


@pytest.mark.long
@pytest.mark.usefixtures("_text")
def test_agent_that_reads_although_it_is_disallowed_is_marked(reader: TestClient) -> None:
    page = open_page(reader, "/ai")
    marked = [name for name, row in rows_of(page).items() if "Disallowed, reading" in row[0]]
    assert marked == ["GPTBot"]
    assert "robots.txt also disallows this agent, which read no page in this period: KimiBot ." in page.text
    assert "also disallows this agent" not in open_page(reader, "/ai", operator="OpenAI").text


@pytest.mark.long
def test_project_without_views_leads_to_the_set_up_and_the_script_alone_sees_no_ai(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with opened(tmp_path_factory.mktemp("empty") / "data") as empty:
        viewer = empty.visitor("viewer")
        page = open_page(viewer, "/ai")
        assert "No page views yet" in page.text
        assert f"/projects/{PROJECT}/setup" in page.links()
        hit, headers = {"url": "https://example.com/a"}, {"User-Agent": FIREFOX, "Origin": "https://example.com"}
        assert empty.client.post(f"/v1/analytics/{PROJECT}/hits", json=hit, headers=headers).status_code == 202
        page = open_page(viewer, "/ai")
        assert "AI readers are not set up" in page.text
        assert page.rows("Operators and their agents") == []


def test_visits_are_not_credited_to_a_purpose_or_an_agent(reader: TestClient) -> None:
    for only in ({"purpose": "training"}, {"agent": "GPTBot"}):
        page = open_page(reader, "/ai", **only)
        assert f"Visits from AI {UNKNOWN} not part of this filter" in page.text
        file = reader.get(f"/projects/{PROJECT}/ai.csv", params=only).text
        for row in csv.DictReader(io.StringIO(file)):
            assert (row["visits_sent"], row["reads_per_visit"]) == ("", "")


def test_period_without_reads_offers_all_time(reader: TestClient) -> None:
    page = open_page(reader, "/ai", **{"from": "2020-01-01", "to": "2020-01-02"})
    assert "AI readers were not counted in this period. Counting began on" in page.text
    assert f"/projects/{PROJECT}/ai?period=all" in page.links()
