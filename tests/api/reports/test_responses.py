"""Keys, filters, media types, ETags and moments, which all reports treat alike."""

import httpx
import pytest

from tests.api.reports.client import CSV, NDJSON, PARQUET, problem, table
from tests.processes.running import PROJECT, Running, new_key

REPORTS = {"views": "views?", "series": "series?interval=month", "breakdown": "breakdown?by=path"}
REPORTS |= {"coverage": "coverage?", "errors": "errors?"}
COUNTS = [name for name in REPORTS if name not in {"coverage", "errors"}]
EVERY_REPORT = pytest.mark.parametrize("report", REPORTS)


def test_report_requires_a_key_that_may_read(service: Running, hits: httpx.Client) -> None:
    keys = {scope: new_key(service.data, "reports-hits", scope) for scope in ("read", "ingest")}
    keys["other"] = new_key(service.data, PROJECT)
    for report in REPORTS.values():
        url = f"{hits.base_url}{report}"
        assert httpx.get(url).status_code == 401
        headers = {name: {"Authorization": f"Bearer {key}"} for name, key in keys.items()}
        statuses = {name: httpx.get(url, headers=each).status_code for name, each in headers.items()}
        assert statuses == {"read": 200, "ingest": 403, "other": 403}, report


@EVERY_REPORT
def test_unknown_parameter_and_unavailable_media_type_are_named(hits: httpx.Client, report: str) -> None:
    (error,) = problem(hits.get(f"{REPORTS[report]}&colour=red"), 400)["errors"]
    assert error["parameter"] == "colour"
    detail = problem(hits.get(REPORTS[report], headers={"Accept": "text/html"}), 406)["detail"]
    assert all(kind in detail for kind in ("application/json", CSV, PARQUET, NDJSON))


FILTERED = {
    "path=/docs/a": (2, 0, 0),
    "path=docs/a/index.html": (2, 0, 0),
    "path=/docs/*": (2, 2, 0),
    "path=/about*": (1, 1, 1),
    "path=/about/*": (0, 1, 0),
    "path=*": (3, 3, 1),
    "path=/doc": (0, 0, 0),
    "traffic=human": (3, 0, 0),
    "traffic=ai": (0, 3, 0),
    "traffic=bot": (0, 0, 1),
    "agent=GPTBot": (0, 2, 0),
    "agent=gptbot": (0, 0, 0),
    "agent=Googlebot": (0, 0, 1),
    "operator=Anthropic": (0, 1, 0),
    "purpose=training": (0, 2, 0),
    "verification=not_checked": (0, 3, 1),
    "verification=verified": (0, 0, 0),
    "source=server": (3, 3, 1),
    "source=log": (0, 0, 0),
    "traffic=ai&path=/docs/*": (0, 2, 0),
    "operator=OpenAI&purpose=training&path=/docs/*&traffic=ai&source=server": (0, 1, 0),
    "agent=GPTBot&traffic=human": (0, 0, 0),
}
"""Filters with the views by people, AI agents and other bots that match them."""


@pytest.mark.long
def test_filters_count_the_same_hits_in_every_report(hits: httpx.Client) -> None:
    for query, (human, ai, bot) in FILTERED.items():
        totals = {report: hits.get(f"{REPORTS[report]}&{query}").json()["totals"] for report in COUNTS}
        assert totals["views"] == {"human": human, "ai": ai, "total": human + ai}, query
        assert totals["series"] == totals["breakdown"], query
        expected = {"human": human, "ai": ai, "bot": bot, "total": human + ai}
        unknown = dict.fromkeys(expected)  # of a source without a hit
        assert totals["series"] == (unknown if query == "source=log" else expected), query


def test_views_have_no_bots_in_any_format(hits: httpx.Client) -> None:
    for report in COUNTS:
        for kind in (CSV, PARQUET, NDJSON):
            columns = list(table(hits.get(REPORTS[report], headers={"Accept": kind}))[0])
            assert ("bot" in columns) is (report != "views")


@EVERY_REPORT
def test_etag_is_of_the_content(hits: httpx.Client, report: str) -> None:
    for kind in ("application/json", CSV, PARQUET, NDJSON):
        first, again = (hits.get(REPORTS[report], headers={"Accept": kind}) for _ in range(2))
        assert first.headers["etag"] == again.headers["etag"]
        unchanged = hits.get(REPORTS[report], headers={"Accept": kind, "If-None-Match": first.headers["etag"]})
        assert (unchanged.status_code, unchanged.content) == (304, b"")
        assert "x-as-of" in unchanged.headers
