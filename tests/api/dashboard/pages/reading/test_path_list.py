"""The list of pages: people beside AI as in the API, the lists that only one of them reads, and pages new to AI."""

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

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
from tests.api.dashboard.site import Dashboard, opened
from tests.processes.running import PROJECT

LISTS = ("All pages", "Read by AI only", "Not read by AI", "New to AI")


def table(page: Html) -> list[list[str]]:
    """Return the rows of the list that the page shows, without AI's share of the total, which the rows imply."""
    rows = next((page.rows(name) for name in LISTS if name in page.tables), [])
    for _, _, ai, total, share, _ in rows:
        assert share == UNKNOWN or abs(100 * int(ai) / int(total) - float(share.strip("%"))) <= 0.5
    return [[*row[:4], row[5]] for row in rows]


def rows_of(page: Html) -> list[tuple[str, int, int, int]]:
    """Return the path, and the views by people, AI and both, of each row."""
    rows = [(row[0], numbers(row[1:4])) for row in table(page)]
    return [(path, human, ai, total) for path, (human, ai, total) in rows]


def in_api(dashboard: Dashboard, query: str) -> list[tuple[str, int, int, int]]:
    rows: list[dict[str, Any]] = dashboard.get_report(f"views?limit=250&{query}")["views"]
    return [(row["path"], row["human"], row["ai"], row["total"]) for row in rows]


@pytest.mark.long
@pytest.mark.parametrize(("parameters", "expected"), SOME_QUERIES, ids=str)
def test_rows_are_those_of_the_api(
    read_site: Dashboard, reader: TestClient, parameters: dict[str, str | int], expected: dict[str, str | int]
) -> None:
    assert rows_of(open_page(reader, "/pages", **parameters)) == in_api(read_site, api_query(expected))


def test_rows_are_ordered_by_a_column_or_the_path(reader: TestClient) -> None:
    for column, sort in enumerate(("people", "ai", "views"), start=1):
        rows = rows_of(open_page(reader, "/pages", sort=sort))
        assert len(rows) > 5
        assert rows == sorted(rows, key=lambda row: (-int(row[column]), row[0]))
    paths = [row[0] for row in rows_of(open_page(reader, "/pages", sort="path"))]
    assert paths == sorted(paths)


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """Yield a dashboard with a page for each list: old, and only of one kind of readers."""
    with opened(tmp_path_factory.mktemp("lists") / "data") as dashboard:
        dashboard.post_hits(
            *(
                {"path": path, "userAgent": user_agent, "timestamp": f"{before(days)}T00:00:00Z"}
                for path, user_agent, days in (
                    ("/both", FIREFOX, 1),
                    ("/both", "GPTBot/1.0", 60),
                    ("/both", "GPTBot/1.0", 2),
                    ("/ai", "GPTBot/1.0", 3),
                    ("/ai", "ClaudeBot/1.0", 0),
                    ("/once", FIREFOX, 3),
                    ("/once", "GPTBot/1.0", 50),
                    ("/people", FIREFOX, 3),
                    ("/bots", "Googlebot/2.1", 1),
                )
            )
        )
        yield dashboard


@pytest.mark.long
def test_each_list_has_its_pages(lists: Dashboard) -> None:
    client = lists.visitor("viewer")
    ai, both = ("/ai", "0", "2", "2", False), ("/both", "1", "1", "2", False)
    once, people = ("/once", "1", "0", "1", False), ("/people", "1", "0", "1", True)
    for show, rows in {"all": [ai, both, once, people], "ai-only": [ai], "not-ai": [once, people], "new": [ai]}.items():
        shown = table(open_page(client, "/pages", show=show))
        assert [(*row[:4], row[4] == "never") for row in shown] == rows
        exported = csv.reader(io.StringIO(client.get(f"/projects/{PROJECT}/pages.csv?show={show}").text))
        assert [row[:4] for row in exported] == [["path", "human", "ai", "total"], *(list(row[:4]) for row in rows)]


@pytest.mark.long
def test_rows_are_ordered_by_the_first_read_by_ai(lists: Dashboard) -> None:
    viewer = lists.visitor("viewer")
    days = {"/ai": before(3), "/once": before(50), "/both": before(60), "/people": ""}
    for show, period, paths in (
        ("all", "30d", ["/ai", "/once", "/both", "/people"]),
        ("not-ai", "30d", ["/once", "/people"]),
        ("new", "90d", ["/ai", "/once"]),
    ):
        page = open_page(viewer, "/pages", show=show, sort="first", period=period)
        assert [row[0] for row in table(page)] == paths
        head = next(attributes for tag, attributes in page.tags if tag == "th" and "aria-sort" in attributes)
        assert head == {"scope": "col", "class": "number first-read", "aria-sort": "descending"}
        file = viewer.get(f"/projects/{PROJECT}/pages.csv?show={show}&sort=first&period={period}")
        rows = list(csv.DictReader(io.StringIO(file.text)))
        assert [(row["path"], row["first_read_by_ai"]) for row in rows] == [(path, days[path]) for path in paths]


@pytest.mark.long
def test_first_read_by_ai_is_that_of_all_time(lists: Dashboard) -> None:
    client = lists.visitor("viewer")
    days = {row[0]: row[4] for row in table(open_page(client, "/pages", period="today"))}
    everything = {row[0]: row[4] for row in table(open_page(client, "/pages", period="all"))}
    assert set(days) == {"/ai"}
    assert days["/ai"] == everything["/ai"]


@pytest.mark.long
def test_page_is_new_to_ai_only_in_the_period_of_its_first_read(lists: Dashboard) -> None:
    client = lists.visitor("viewer")
    new = {
        period: sorted(row[0] for row in table(open_page(client, "/pages", show="new", period=period)))
        for period in ("today", "7d", "90d", "all")
    }
    assert new == {"today": [], "7d": ["/ai"], "90d": ["/ai", "/once"], "all": ["/ai", "/once"]}


@pytest.mark.long
def test_list_without_ai_is_that_of_the_period(lists: Dashboard) -> None:
    viewer = lists.visitor("viewer")
    periods: list[tuple[dict[str, str | int], list[str]]] = [
        ({}, ["/once", "/people"]),
        ({"period": "today"}, []),
        ({"period": "90d"}, ["/people"]),
        ({"period": "all"}, ["/people"]),
        ({"from": 1, "to": 1}, ["/both"]),
    ]
    for parameters, pages in periods:
        page = open_page(viewer, "/pages", show="not-ai", sort="path", **parameters)
        assert [row[0] for row in page.rows("Not read by AI")] == pages


def test_search_becomes_a_filter_and_keeps_the_list(reader: TestClient) -> None:
    response = reader.get(f"/projects/{PROJECT}/pages?search=docs/&show=not-ai&period=7d")
    assert response.status_code == 303
    target = urlsplit(response.headers["location"])
    assert target.path == f"/projects/{PROJECT}/pages"
    assert parse_qs(target.query) == {"path": ["*docs/*"], "show": ["not-ai"], "period": ["7d"]}
    cleared = reader.get(f"/projects/{PROJECT}/pages?search=&path=/docs*").headers["location"]
    assert cleared == f"/projects/{PROJECT}/pages"


@pytest.mark.long
def test_search_finds_in_the_middle_of_paths(read_site: Dashboard, reader: TestClient) -> None:
    found = rows_of(open_page(reader, "/pages", path="*OC*"))
    assert found == []  # upper and lower case differ
    found = rows_of(open_page(reader, "/pages", path="*oc*", period="all"))
    assert found == [row for row in in_api(read_site, "") if "oc" in row[0]] != []


@pytest.mark.long
def test_pages_of_the_table_have_every_path_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    with opened(tmp_path_factory.mktemp("many") / "data") as dashboard:
        hits = [{"path": f"/p/{number}", "userAgent": "GPTBot/1.0"} for number in range(120)]
        first_day = {"path": "/old", "userAgent": "GPTBot/1.0", "timestamp": f"{before(40)}T00:00:00Z"}
        dashboard.post_hits(*hits, first_day)
        client = dashboard.visitor("viewer")
        for show, sort in (("all", "views"), ("all", "first"), ("new", "first"), ("new", "views")):
            pages = [open_page(client, "/pages", show=show, sort=sort, page=number) for number in ("1", "2", "3", "4")]
            ranks = [[text for text in page.texts if re.fullmatch(r"\d+\W\d+", text)] for page in pages]
            assert [re.findall(r"\d+", "".join(each)) for each in ranks] == [
                ["1", "50"],
                ["51", "100"],
                ["101", "120"],
                [],
            ]
            paths = [row[0] for page in pages for row in table(page)]
            assert sorted(paths) == sorted(hit["path"] for hit in hits)
            assert len(paths) == 120
        following = next(link for link in pages[0].links() if "page=2" in link)
        assert parse_qs(urlsplit(following).query) == {"page": ["2"], "show": ["new"], "sort": ["views"]}


@pytest.mark.long
def test_filter_by_agent_leaves_no_number_of_people(reader: TestClient) -> None:
    rows = table(open_page(reader, "/pages", agent="GPTBot"))
    assert rows
    assert {row[1] for row in rows} == {UNKNOWN}


@pytest.mark.long
def test_wrong_parameter_is_named(reader: TestClient) -> None:
    for query, sentence in (
        *WRONG[:5],
        ("show=secret", "There is no list “secret” of pages"),
        ("sort=bots", "The pages cannot be sorted by “bots”"),
        ("page=-1", "There is no page “-1”"),
        ("path=%ff%00", "Page must be a path"),
    ):
        response = reader.get(f"/projects/{PROJECT}/pages?{query}")
        assert response.status_code == 400
        assert "<script>" not in response.text
        assert sentence in Html(response.text).text
        if not query.startswith("page="):
            assert reader.get(f"/projects/{PROJECT}/pages.csv?{query}").status_code == 400


@pytest.mark.long
def test_project_without_ai_is_not_shown_as_unread(tmp_path_factory: pytest.TempPathFactory) -> None:
    with opened(tmp_path_factory.mktemp("beacon") / "data") as dashboard:
        headers = {"User-Agent": FIREFOX, "Origin": "https://example.com"}
        hit = {"url": "https://example.com/a"}
        assert dashboard.client.post(f"/v1/analytics/{PROJECT}/hits", json=hit, headers=headers).status_code == 202
        page = open_page(dashboard.visitor("viewer"), "/pages", show="not-ai")
        assert "AI readers are not set up" in page.text
        assert "It is unknown which pages AI never read." in page.text
        assert dashboard.visitor("viewer").get("/projects/site/pages.csv?show=not-ai").text == "path,human,ai,total\r\n"
        every = open_page(dashboard.visitor("viewer"), "/pages")
        assert table(every)[0][2:] == [UNKNOWN, "1", UNKNOWN]


@pytest.mark.long
def test_attack_by_a_path_is_text_and_a_link_to_the_page(read_site: Dashboard, reader: TestClient) -> None:
    read_site.post_hits({"path": f"/{ATTACK}?&=", "userAgent": FIREFOX})
    page = open_page(reader, "/pages", path="/%22*")
    [[path, *_]] = table(page)
    link = next(link for link in page.links() if "/page?" in link)
    assert parse_qs(urlsplit(link).query)["path"] == [path]
    assert open_page(reader, "/page", path=path).rows("Referrers")


@pytest.mark.long
def test_path_is_decoded_with_a_link_to_the_exact_path(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as dashboard:
        dashboard.post_hits({"path": "/żółw/2%2F3", "userAgent": FIREFOX})
        reader = dashboard.visitor("viewer")
        for path, name in (("/pages", "All pages"), ("", "Top pages")):
            page = open_page(reader, path)
            [[text, *_]] = page.rows(name)
            [exact] = {parse_qs(urlsplit(link).query)["path"][0] for link in page.links() if "2%252F3" in link}
            assert (text, exact) == ("/żółw/2%2F3", "/%C5%BC%C3%B3%C5%82w/2%2F3")
