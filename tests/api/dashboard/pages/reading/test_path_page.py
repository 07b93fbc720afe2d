"""The page of one path: numbers of the API, first read by AI, and addresses that name no page."""

import re
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from tests.api.dashboard.days import before
from tests.api.dashboard.html import Html
from tests.api.dashboard.pages.reading.ai.ai_traffic import (
    ATTACK,
    FIREFOX,
    SOME_QUERIES,
    UNKNOWN,
    WRONG,
    api_query,
    numbers,
    open_page,
)
from tests.api.dashboard.site import Dashboard
from tests.processes.running import PROJECT, new_key
from warehouse.control import projects

PATH = "/docs/1"
PLAIN = [each for each in SOME_QUERIES if "path" not in each[0]]
TABLES = [
    ("AI agents", "agent", "traffic=ai", ("ai",), {}),
    ("Referrers", "referrerHost", "traffic=human", ("human",), {None: "Direct or unknown"}),
    ("Formats", "format", "", ("human", "ai", "bot"), {"text/html": "HTML", "text/markdown": "Markdown"}),
    ("Status", "status", "", ("human", "ai", "bot"), {}),
    ("Sources", "source", "", ("human", "ai", "bot"), {"server": "Your server"}),
]
"""Heading of a table, its dimension and filter in the API, its columns, and names of values."""


@pytest.mark.parametrize(("parameters", "expected"), PLAIN, ids=str)
def test_numbers_are_those_of_the_api(
    read_site: Dashboard, reader: TestClient, parameters: dict[str, str | int], expected: dict[str, str | int]
) -> None:
    query = f"path={PATH}&{api_query(expected)}"
    page = open_page(reader, "/page", **parameters, path=PATH)
    totals = read_site.get_report(f"breakdown?by=source&{query}")["totals"]
    assert f"People {totals['human']} AI {totals['ai']} Other bots {totals['bot']} First read by AI" in page.text
    if not any(totals.values()):
        assert "No view of this page in this period." in page.text
        return
    for heading, by, filters, columns, names in TABLES:
        rows = read_site.get_report(f"breakdown?by={by}&limit=20&{query}&{filters}".removesuffix("&"))["rows"]
        known = {None: "Not recorded"} | names
        assert [(row[0], *numbers(row[1:])) for row in page.rows(heading)] == [
            (known.get(row["value"], row["value"]), *(row[name] for name in columns)) for row in rows
        ], heading


@pytest.mark.long
def test_totals_have_their_change_if_the_page_compares(read_site: Dashboard, reader: TestClient) -> None:
    days = {"from": 10, "to": 1}
    pages: tuple[tuple[str, str, dict[str, str], dict[str, str]], ...] = (
        ("/page", f"path={PATH}", {"path": PATH}, {"People": "human", "AI": "ai", "Other bots": "bot"}),
        ("/ai", "traffic=ai", {}, {"Reads by AI": "ai"}),
        ("/ai/agents/GPTBot", "agent=GPTBot", {}, {"Reads": "ai"}),
    )
    for path, filters, parameters, names in pages:
        was = read_site.get_report(f"series?dateFrom={before(20)}&dateTo={before(10)}&{filters}")["totals"]
        page = open_page(reader, path, **days, **parameters, compare="previous")
        for name, kind in names.items():
            change = f"(?:new|{UNKNOWN})" if was[kind] == 0 else "[+\N{MINUS SIGN}]?[0-9]+%"
            text = rf"\b{name} \d+ {change} compared with the previous period: {was[kind]}\b"
            assert re.search(text, page.text), name
        assert "compared with" not in open_page(reader, path, **days, **parameters).text
        assert "compared with" not in open_page(reader, path, **parameters, compare="previous").text


def test_chart_is_that_of_the_api(read_site: Dashboard, reader: TestClient) -> None:
    series = read_site.get_report(f"series?path={PATH}&dateFrom={before(29)}")["series"]
    rows = open_page(reader, "/page", path=PATH).rows("Numbers of this chart")
    assert [numbers(row[1:]) for row in rows if row[1] != UNKNOWN] == [[row["human"], row["ai"]] for row in series]


@pytest.mark.long
def test_click_on_a_value_filters_the_page_of_the_path(read_site: Dashboard, reader: TestClient) -> None:
    page = open_page(reader, "/page", path=PATH)
    for name in ("referrerHost", "format", "status", "source"):
        link = next(link for link in page.links() if f"&{name}=" in link)
        assert link.startswith(f"/projects/{PROJECT}/page?path=")
        filtered = reader.get(link).text
        assert Html(filtered).rows("Sources")
        assert f'href="/projects/{PROJECT}/page?path=' in filtered.partition('class="chip"')[2][:60]


@pytest.mark.long
def test_page_that_ai_never_read(read_site: Dashboard, reader: TestClient) -> None:
    read_site.post_hits({"path": "/only-people", "userAgent": FIREFOX})
    page = open_page(reader, "/page", path="/only-people")
    assert "First read by AI never" in page.text
    assert "No AI reader in this period." in page.text


def test_other_pages_of_the_site_are_named_as_referrers(read_site: Dashboard) -> None:
    key = new_key(read_site.data, "linked")
    projects.set_origins(read_site.engine, "linked", ("https://example.com",))
    hits = [
        {"path": "/b", "userAgent": FIREFOX, "referrer": f"https://{host}/"} for host in ("example.com", "a.example")
    ]
    read_site.post_hits(*hits, project="linked", key=key)
    page = Html(read_site.visitor("viewer").get("/projects/linked/page?path=/b").text)
    assert page.rows("Referrers") == [["a.example", "1"], ["example.com (this site)", "1"]]


def test_page_without_views_offers_all_time_and_its_errors(reader: TestClient) -> None:
    page = open_page(reader, "/page", path="/nowhere")
    assert "No view of this page in this period." in page.text
    assert f"/projects/{PROJECT}/page?period=all&path=%2Fnowhere" in page.links()
    (errors,) = (link for link in page.links() if "/errors?" in link and "path=%2Fnowhere" in link)
    assert reader.get(errors).status_code == 200


def test_address_without_one_path_leads_to_the_list(reader: TestClient) -> None:
    for query, sentence in (
        ("", "The address names no page."),
        ("?path=/docs/*", "/docs/* can match several pages."),
        ("?path=%00", "Page must be a path"),
    ):
        response = reader.get(f"/projects/{PROJECT}/page{query}")
        assert response.status_code == 400
        page = Html(response.text)
        assert sentence in page.text
        assert any(link.startswith(f"/projects/{PROJECT}/pages") for link in page.links())


@pytest.mark.long
def test_wrong_parameter_is_named(reader: TestClient) -> None:
    for query, sentence in WRONG:
        name, _, value = query.partition("=")
        assert sentence in open_page(reader, "/page", 400, **{"path": PATH, name: value}).text


@pytest.mark.long
def test_attacks_by_path_and_referrer_are_text(read_site: Dashboard, reader: TestClient) -> None:
    path = "/" + quote(ATTACK)
    hit = {"path": path, "userAgent": FIREFOX, "referrer": f"https://evil.example/{ATTACK}"}
    read_site.post_hits(hit)
    page = open_page(reader, "/page", path=path)
    assert path in "".join(page.texts)
    assert [row[0] for row in page.rows("Referrers")] == ["evil.example"]
