"""The overview of what no source has counted: a number that is not measured is never 0."""

import asyncio
import csv
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from babel.dates import format_date
from starlette.testclient import TestClient

from api.dashboard.pages.reading.measured import APART, NOT_COUNTED
from ingest.hits.hit import Hit
from ingest.hits.row import row
from ingest.hotlog.deduplication import Post
from tests.api.dashboard.days import before, today
from tests.api.dashboard.html import Html
from tests.api.dashboard.pages.reading.overview.overview_page import FIREFOX, UNKNOWN, page_of, totals
from tests.api.dashboard.site import Dashboard, opened
from tests.processes.running import new_key
from warehouse.control import projects, source_policies


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    with opened(tmp_path_factory.mktemp("unmeasured") / "data") as opened_dashboard:
        opened_dashboard.post_hits({"path": "/a", "userAgent": FIREFOX})
        yield opened_dashboard


def legend(html: str) -> list[str]:
    """Return the names in the legend of the chart."""
    part = html.partition('<ul class="chart-legend">')[2].partition("</ul>")[0]
    return [text.strip() for text in re.findall(r"(?:</span>|</b>)([^<]+)</li>", part)]


def ago(days: int) -> datetime:
    """Return the time this number of days before now."""
    return datetime.now(UTC) - timedelta(days)


@pytest.mark.long
def test_source_that_is_not_set_up_is_never_zero(viewer: TestClient) -> None:
    sources = {row[0]: row[1:] for row in page_of(viewer).rows("Sources")}
    assert sources["Website script"] == sources["Access logs"] == ["Not set upSet up"]
    assert int(sources["Your server"][0]) > 0
    page = page_of(viewer, source="beacon")
    assert "Website script: not set up" in page.text
    assert totals(page) == {}


def test_project_without_a_view_leads_to_its_set_up(dashboard: Dashboard, viewer: TestClient) -> None:
    new_key(dashboard.data, "empty")
    page = page_of(viewer, "empty")
    assert "No page views yet" in page.text
    assert "/projects/empty/setup" in page.links()
    assert not re.search(r"\b0\b", page.text)


@pytest.mark.long
def test_ai_is_unknown_if_only_the_website_script_counts(dashboard: Dashboard, viewer: TestClient) -> None:
    new_key(dashboard.data, "script")
    body, headers = {"url": "https://script.example/a"}, {"Origin": "https://script.example", "User-Agent": FIREFOX}
    assert dashboard.client.post("/v1/analytics/script/hits", json=body, headers=headers).status_code == 202
    page = page_of(viewer, "script", period="30d")
    assert totals(page) == {"People": "1", "AI": "Not set up", "Other bots": "Not set up", "Visits from AI": "0"}
    assert page.rows("Top pages") == [["/a", "1", UNKNOWN, "1"]]
    assert page.rows("Sources")[0][:3] == ["Website script", "1", UNKNOWN]
    assert page.rows("Numbers of this chart")[-1][1:] == ["1", UNKNOWN]
    assert page.rows("Numbers of this chart")[0][1:] == [UNKNOWN, UNKNOWN]
    assert "Website script began on" in page.text
    assert Html(viewer.get("/projects/script/live").text).text == "Last 30 minutes: 1 by people"


def test_source_of_a_page_has_no_number_of_readers_that_it_does_not_see(dashboard: Dashboard) -> None:
    key = new_key(dashboard.data, "both")
    body, headers = {"url": "https://both.example/a"}, {"Origin": "https://both.example", "User-Agent": FIREFOX}
    assert dashboard.client.post("/v1/analytics/both/hits", json=body, headers=headers).status_code == 202
    dashboard.post_hits({"path": "/a", "userAgent": "GPTBot/1.3"}, project="both", key=key)
    page = Html(dashboard.visitor("viewer").get("/projects/both/page?path=/a").text)
    assert sorted(page.rows("Sources")) == [["Website script", "1", UNKNOWN, UNKNOWN], ["Your server", "0", "1", "0"]]


@pytest.mark.long
def test_ai_is_unknown_in_a_period_before_a_source_that_sees_ai(dashboard: Dashboard, viewer: TestClient) -> None:
    key = new_key(dashboard.data, "later")
    post_old_beacon(dashboard, "later", ago(20))
    dashboard.post_hits({"path": "/a", "userAgent": "GPTBot/1.3"}, project="later", key=key)
    page = page_of(viewer, "later", from_=25, to=15)
    assert totals(page) == {"People": "1", "AI": UNKNOWN, "Other bots": UNKNOWN, "Visits from AI": "0"}
    assert page.rows("Sources")[1][:3] == ["Your server", UNKNOWN, UNKNOWN]
    assert page.rows("Top pages") == [["/a", "1", UNKNOWN, "1"]]
    assert "AI readers and other bots were not counted in this period." in page.text
    assert totals(page_of(viewer, "later"))["AI"] == "1"


@pytest.mark.long
def test_ai_is_unknown_in_the_intervals_before_a_source_that_sees_ai(partly: TestClient) -> None:
    for path, people in (("", "1"), ("/ai", None), ("/page?path=/b", "0")):
        response = partly.get(f"/projects/partly{path}")
        rows = {row[0]: row[1:] for row in Html(response.text).rows("Numbers of this chart")}
        assert [row[-1] for row in rows.values()] == [UNKNOWN] * 24 + ["1"] + ["0"] * 5
        assert people is None or [row[0] for row in rows.values()][9] == people
        assert 'class="unmeasured"' in response.text
        assert "Not counted" in legend(response.text)
        today_only = partly.get(f"/projects/partly{path}{'&' if '?' in path else '?'}period=today").text
        assert "Not counted" not in legend(today_only)


@pytest.mark.long
def test_total_of_ai_is_that_since_ai_was_counted(partly: TestClient) -> None:
    page = page_of(partly, "partly")
    assert totals(page) == {"People": "2", "AI": "1", "Other bots": "1", "Visits from AI": "0"}
    assert "AI readers and other bots have been counted since" in page.text


@pytest.mark.long
def test_source_that_began_in_the_previous_period_or_is_silent_has_no_change(partly: TestClient) -> None:
    rows = page_of(partly, "partly", period="7d", compare="previous").rows("Sources")
    assert [row[3] for row in rows[:2]] == [UNKNOWN, UNKNOWN]
    rows = page_of(partly, "partly", from_=2, to=1, compare="previous").rows("Sources")
    assert [row[3] for row in rows[:2]] == [UNKNOWN, f"{UNKNOWN} from 0"]


@pytest.mark.long
def test_people_are_counted_since_the_script_began(dashboard: Dashboard, viewer: TestClient) -> None:
    key = new_key(dashboard.data, "later-people")
    since = today() - timedelta(days=60)
    source_policies.put(dashboard.engine, "later-people", "beacon_people_log_machines", since)
    for days in (9, 2, 2, 2):
        view = {"path": "/a", "userAgent": "GPTBot/1.3", "timestamp": ago(days).isoformat()}
        dashboard.post_hits(view, {**view, "userAgent": FIREFOX}, project="later-people", key=key)
    post_old_beacon(dashboard, "later-people", ago(3))
    page = page_of(viewer, "later-people")
    assert totals(page) == {"People": "1", "AI": "4", "Other bots": "0", "Visits from AI": "0"}
    assert page.text.count("People have been counted since ") == 1, page.text
    assert [row[1] for row in page.rows("Numbers of this chart")] == [UNKNOWN] * 26 + ["1", "0", "0", "0"]


def test_list_of_pages_without_ai_names_what_is_unknown(partly: TestClient) -> None:
    for last, rows, sentence in (
        (15, [], "AI readers were not counted in this period. Counting began on"),
        (1, [["/a", "1", "0"]], "AI readers have been counted since"),
    ):
        page = Html(partly.get(f"/projects/partly/pages?show=not-ai&from={before(25)}&to={before(last)}").text)
        assert [row[:3] for row in page.rows("Not read by AI")] == rows
        assert sentence in page.text


@pytest.fixture(scope="module")
def partly(dashboard: Dashboard, viewer: TestClient) -> TestClient:
    """Return a client of a project that counts people for 20 days, and AI for 5 days."""
    key = new_key(dashboard.data, "partly")
    post_old_beacon(dashboard, "partly", ago(20))
    at = ago(5).isoformat()
    dashboard.post_hits(
        {"path": "/b", "userAgent": "GPTBot/1.3", "timestamp": at},
        {"path": "/b", "userAgent": "Googlebot/2.1", "timestamp": at},
        {"path": "/b", "userAgent": FIREFOX, "timestamp": at},
        project="partly",
        key=key,
    )
    return viewer


@pytest.fixture(scope="module")
def silent(dashboard: Dashboard, viewer: TestClient) -> TestClient:
    """Return a client of a project whose server fell silent after day 12 before today; people have the script, too."""
    post_until_silent(dashboard, "silent")
    return viewer


def post_until_silent(dashboard: Dashboard, project: str) -> None:
    key = new_key(dashboard.data, project)
    for days in range(25, 11, -1):
        hit = {"path": "/a", "userAgent": "GPTBot/1.3", "timestamp": f"{before(days)}T12:00:00Z"}
        dashboard.post_hits(hit, {**hit, "userAgent": "Googlebot/2.1"}, project=project, key=key)
    for days in range(25, 0, -1):
        post_old_beacon(dashboard, project, datetime.fromisoformat(f"{before(days)}T12:00:00Z"))
    post_old_beacon(dashboard, project, ago(0))


@pytest.mark.long
def test_source_that_fell_silent_is_never_zero(silent: TestClient) -> None:
    page = page_of(silent, "silent", period="7d", compare="previous")
    assert totals(page) == {"People": "7", "AI": UNKNOWN, "Other bots": UNKNOWN, "Visits from AI": "0"}
    last = format_date(today() - timedelta(12), locale="en")
    assert (
        f"AI readers and other bots were not counted in this period. “Your server” sent no view after {last}."
        in page.text
    )
    assert {tuple(row[3:]) for row in page.rows("Numbers of this chart")} == {(UNKNOWN, UNKNOWN)}
    assert page.rows("Top pages")[0][:4] == ["/a", "7", UNKNOWN, "7"]
    assert page.rows("Sources")[1][1:4] == [UNKNOWN, UNKNOWN, UNKNOWN]
    assert "Previous period" in page.text
    assert Html(silent.get("/projects/silent/live").text).text.startswith("Last 30 minutes: 1 by people")
    assert " by AI" not in Html(silent.get("/projects/silent/live").text).text


@pytest.mark.long
def test_page_of_a_period_with_a_silent_source_names_it(silent: TestClient) -> None:
    not_sent = "were not counted in this period. “Your server” sent no view after"
    for address, sentences in {
        "/ai?": [f"AI readers {not_sent}"],
        "/pages?show=not-ai&": ["It is unknown which pages AI never read.", "AI readers were not counted"],
        "/errors?": [f"Errors {not_sent}"],
        "/cost?": ["Requests are unknown", f"Requests {not_sent}"],
        "/page?path=/a&": ["AI readers were not counted in this period."],
    }.items():
        text = Html(silent.get(f"/projects/silent{address}period=7d").text).text
        assert all(sentence in text for sentence in sentences), text
        for nothing in ("No reads by AI", "No errors in this period", "No requests in this period"):
            assert nothing not in text


@pytest.mark.long
def test_share_over_days_on_which_one_kind_of_readers_was_not_counted_is_a_dash(silent: TestClient) -> None:
    for days, reason in ((7, NOT_COUNTED), (30, APART)):
        text = silent.get(f"/projects/silent/pages?period={days}d").text
        assert {row[4] for row in Html(text).rows("All pages")} == {UNKNOWN}
        assert f'title="{reason}"' in text
    both = silent.get(f"/projects/silent/pages?from={before(20)}&to={before(13)}").text
    assert UNKNOWN not in {row[4] for row in Html(both).rows("All pages")}


@pytest.mark.long
def test_reads_per_visit_need_days_on_which_both_were_counted(dashboard: Dashboard, viewer: TestClient) -> None:
    post_until_silent(dashboard, "visited")
    at = f"{before(14)}T13:00:00Z"
    visit = {"path": "/a", "userAgent": FIREFOX, "referrer": "https://chatgpt.com/", "timestamp": at}
    dashboard.post_hits(visit, project="visited", key=new_key(dashboard.data, "visited"))
    for query, shown, in_file in (("period=30d", UNKNOWN, ""), (f"from={before(20)}&to={before(13)}", "8", "8.0")):
        [ai] = Html(viewer.get(f"/projects/visited/ai?{query}").text).rows("Operators and their agents")[:1]
        [overview] = Html(viewer.get(f"/projects/visited?{query}").text).rows("AI operators")[:1]
        header, row, *_ = csv.reader(viewer.get(f"/projects/visited/ai.csv?{query}").text.splitlines())
        assert (ai[-1], overview[-1], row[header.index("reads_per_visit")]) == (shown, shown, in_file)


def test_pages_to_which_ai_sent_visits_have_no_reads_while_ai_was_not_counted(
    dashboard: Dashboard, viewer: TestClient
) -> None:
    post_until_silent(dashboard, "sent")
    hosts = ("chatgpt.com", "claude.ai", "claude.ai", "chat.mistral.ai", "www.perplexity.ai", "gemini.google.com")
    for host in hosts:
        post_old_beacon(dashboard, "sent", ago(1), f"https://{host}/")
    row = "/aAnthropic 2, Google 1, Mistral AI 1, others 2"
    for query, reads in (("period=7d", UNKNOWN), ("period=30d", "14"), ("period=30d&traffic=human", UNKNOWN)):
        page = Html(viewer.get(f"/projects/sent?{query}").text)
        assert page.rows("Pages that AI sends visits to") == [[row, reads, "6", UNKNOWN]]


@pytest.mark.long
def test_ai_is_counted_until_its_source_fell_silent(silent: TestClient) -> None:
    page = page_of(silent, "silent")
    assert totals(page) == {"People": "26", "AI": "14", "Other bots": "14", "Visits from AI": "0"}
    last = format_date(today() - timedelta(12), locale="en")
    assert f"were not counted in all of this period: “Your server” sent no view after {last}." in page.text
    assert "14 of 14" not in Html(silent.get("/projects/silent/ai").text).text  # the only operator


def post_old_beacon(dashboard: Dashboard, project: str, at: datetime, referrer: str | None = None) -> None:
    """Store a view by the website script at a time in the past."""
    hotlog = dashboard.client.app_state["running"].intake.hotlog
    view = Hit("/a", round(at.timestamp() * 1_000_000), FIREFOX, referrer, {}, None, None, None)
    internal_id = projects.find(dashboard.engine, project).internal_id
    post = Post(project, [row(project, view, "beacon", view.ts_us)], [], internal_id=internal_id)

    async def store() -> None:
        await hotlog.post(post)

    asyncio.run_coroutine_threadsafe(store(), hotlog.loop).result()


def test_period_before_the_first_view_is_unknown(viewer: TestClient) -> None:
    page = page_of(viewer, from_="2020-01-01", to="2020-01-31")
    assert set(totals(page).values()) == {UNKNOWN}
    assert "Counting began on" in page.text


@pytest.mark.long
def test_days_without_a_view_of_a_source_are_named(dashboard: Dashboard, viewer: TestClient) -> None:
    """Post on days 13, 8, 7, 6, 5, 4 and 2 before today: nothing on days 12 to 9, and 3."""
    days = [f"{before(number)}T12:00:00Z" for number in (13, 8, 7, 6, 5, 4, 2)]
    hits = [{"path": "/a", "userAgent": "GPTBot/1.3", "timestamp": day} for day in days]
    dashboard.post_hits(*hits, project="gap", key=new_key(dashboard.data, "gap"))
    post_old_beacon(dashboard, "gap", ago(0))
    named = [format_date(today() - timedelta(number), locale="en") for number in (12, 9, 3)]
    of_all = f"on 5 days of this period (UTC): {named[0]} {UNKNOWN} {named[1]}, {named[2]}."
    for parameters, sentence in (({}, of_all), ({"from_": 9, "to": 9}, f"on 1 day of this period (UTC): {named[1]}.")):
        assert f"Your server sent no view {sentence}" in page_of(viewer, "gap", **parameters).text
    assert "sent no view on" not in page_of(viewer, "gap", from_=8, to=4).text
    assert "sent no view on" not in page_of(viewer, "gap", source="beacon").text
    assert "Your server sent no view on 5 days" in Html(viewer.get("/projects/gap/ai").text).text
