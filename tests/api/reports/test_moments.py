"""Moments: pages, totals and tables as of an earlier response."""

import httpx
import pytest

from tests.api.reports.client import CSV, FIREFOX, GPTBOT, NDJSON, PARQUET, post
from tests.api.reports.test_responses import EVERY_REPORT, REPORTS


@pytest.fixture
def filled(site: httpx.Client) -> httpx.Client:
    """Return a client of a new project with three paths, and an error of each path."""
    post(site, *((path, FIREFOX, "2025-03-01T00:00:00Z") for path in ("/a", "/b", "/c")))
    post_errors(site, "/a", "/b", "/c")
    return site


def post_errors(site: httpx.Client, *paths: str) -> None:
    hits = [{"path": path, "userAgent": GPTBOT, "timestamp": "2025-03-02T00:00:00Z", "status": 404} for path in paths]
    assert site.post("hits", json=hits).json()["accepted"] == len(hits)


@EVERY_REPORT
def test_report_as_of_a_moment_does_not_change_when_hits_arrive(filled: httpx.Client, report: str) -> None:
    kinds = ("application/json", CSV, PARQUET, NDJSON)
    answers = {kind: filled.get(REPORTS[report], headers={"Accept": kind}) for kind in kinds}
    post(filled, ("/a", FIREFOX, "2025-02-01T00:00:00Z"), ("/d", FIREFOX, "2025-04-01T00:00:00Z"))
    post_errors(filled, "/a", "/d")
    for kind, then in answers.items():
        headers, moment = {"Accept": kind}, then.headers["x-as-of"]
        now = filled.get(REPORTS[report], headers=headers)
        assert now.content != then.content
        assert now.headers["x-as-of"] != moment
        as_of = filled.get(f"{REPORTS[report]}&asOf={moment}", headers=headers)
        assert (as_of.content, as_of.headers["etag"]) == (then.content, then.headers["etag"])
        assert as_of.headers["x-as-of"] == moment
        headers["If-None-Match"] = then.headers["etag"]
        unchanged = filled.get(f"{REPORTS[report]}&asOf={moment}", headers=headers)
        assert (unchanged.status_code, unchanged.headers["x-as-of"]) == (304, moment)


@pytest.mark.parametrize(("report", "rows"), [("views", "views"), ("breakdown", "rows"), ("errors", "errors")])
def test_pages_as_of_the_first_page_have_each_row_once(filled: httpx.Client, report: str, rows: str) -> None:
    first = filled.get(f"{REPORTS[report]}&limit=1")
    pages = [first.json()]
    while pages[-1]["hasMore"]:
        post(filled, ("/c", FIREFOX), ("/new", FIREFOX))  # /c would become the first row
        post_errors(filled, "/c", "/new")
        query = f"limit=1&offset={len(pages)}&asOf={first.headers['x-as-of']}"
        pages.append(filled.get(f"{REPORTS[report]}&{query}").json())
    name = "value" if report == "breakdown" else "path"
    assert [row[name] for page in pages for row in page[rows]] == ["/a", "/b", "/c"]
    assert report == "errors" or {page["totals"]["total"] for page in pages} == {3}


def test_moment_of_one_report_is_one_of_all_others(filled: httpx.Client) -> None:
    answers = {report: filled.get(query) for report, query in REPORTS.items()}
    post(filled, ("/d", FIREFOX, "2025-04-01T00:00:00Z"))
    post_errors(filled, "/d")
    for answer in answers.values():
        for report, query in REPORTS.items():
            again = filled.get(f"{query}&asOf={answer.headers['x-as-of']}")
            assert again.content == answers[report].content
