"""The view of a page of counts, from its address: period, filters, chips, links and faults."""

from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import pytest
from starlette.requests import Request

from api.dashboard.robots import texts
from api.dashboard.web.view import View
from api.dashboard.web.visit import ProjectVisit
from tests.api.dashboard.html import Html
from tests.api.dashboard.site import Dashboard
from tests.processes.running import PROJECT, new_key
from warehouse.columns.dimensions import FILTERS
from warehouse.columns.filters import Filters
from warehouse.control import projects

PATH = f"/projects/{PROJECT}"


def view(dashboard: Dashboard, query: str, cookie: str = "", id: str = PROJECT) -> View:
    """Return the view of the overview's address with this query. The project gets another `id`."""
    headers = [(b"host", b"testserver"), (b"cookie", cookie.encode())]
    path, project = f"/projects/{id}", replace(projects.find(dashboard.engine, PROJECT), id=id)
    scope = {"type": "http", "method": "GET", "path": path, "query_string": query.encode(), "headers": headers}
    request = Request({**scope, "server": ("testserver", 80), "scheme": "http"})
    state = dashboard.client.app_state["running"]
    return View(ProjectVisit(request, state, datetime.now(UTC), project=project))


def parameters(link: str) -> dict[str, list[str]]:
    return parse_qs(urlsplit(link).query)


def test_without_parameters_the_page_shows_the_last_30_days(dashboard: Dashboard) -> None:
    shown = view(dashboard, "")
    assert (shown.period.name, shown.filters, shown.chips, shown.status) == ("30d", Filters(), [], 200)


def test_zone_is_that_of_the_address_then_of_the_browser_then_utc(dashboard: Dashboard) -> None:
    cookie = "readership_zone=Asia/Tokyo"
    sent = [("zone=Europe/Berlin", cookie), ("", cookie), ("", "")]
    zones = [view(dashboard, query, jar).zone.key for query, jar in sent]
    assert zones == ["Europe/Berlin", "Asia/Tokyo", "UTC"]


def test_filters_are_chips_that_can_be_removed(dashboard: Dashboard) -> None:
    shown = view(dashboard, "period=7d&traffic=ai&path=/docs/*&source=beacon")
    assert [(chip.name, chip.value) for chip in shown.chips] == [
        ("Page", "/docs/*"),
        ("Readers", "AI"),
        ("Source", "Website script"),
    ]
    without = shown.link(**{shown.chips[1].parameter: None})
    assert parameters(without) == {"period": ["7d"], "path": ["/docs/*"], "source": ["beacon"]}
    assert urlsplit(without).path == PATH
    assert parameters(shown.link(**shown.no_filters)) == {"period": ["7d"]}


def test_every_dimension_is_a_filter_with_a_title(dashboard: Dashboard) -> None:
    values = dict.fromkeys(FILTERS, "x") | {
        "path": "/a", "entryPage": "/b", "exitPage": "/c*", "status": "404", "format": "text/markdown",
        "traffic": "bot", "purpose": "data", "verification": "claimed", "source": "log", "device": "mobile",
        "evidence": "none",
    }  # fmt: skip
    shown = view(dashboard, urlencode({"period": "custom", "from": "2026-09-01", "to": "2026-09-02", **values}))
    assert shown.faults == []
    assert [(chip.name, chip.value) for chip in shown.chips] == [
        ("Page", "/a"), ("Entry page", "/b"), ("Exit page", "/c*"), ("Readers", "Other bots"), ("Agent", "x"),
        ("Operator", "x"), ("Purpose", "Resells data"), ("Verification", "Claimed"), ("Source", "Access logs"),
        ("Evidence", "None"), ("Channel", "x"), ("Referrer", "x"), ("UTM source", "x"), ("UTM medium", "x"),
        ("UTM campaign", "x"), ("UTM term", "x"), ("UTM content", "x"), ("Click id", "x"), ("Country", "x"),
        ("Language", "x"), ("Browser", "x"), ("System", "x"), ("Device", "Phone"), ("Format", "Markdown"),
        ("Status", "404"), ("Rule", "x"),
    ]  # fmt: skip


def test_tab_of_errors_does_not_take_the_status_of_page_views(dashboard: Dashboard) -> None:
    shown = view(dashboard, "status=200&browser=Firefox")
    assert parameters(shown.tab(f"{PATH}/errors")) == {"browser": ["Firefox"]}
    assert parameters(shown.tab(f"{PATH}/pages")) == {"browser": ["Firefox"], "status": ["200"]}


@pytest.mark.parametrize("id", ["errors", "jobs"])
def test_project_with_the_name_of_a_page_keeps_the_status_and_its_first_view(dashboard: Dashboard, id: str) -> None:
    key = new_key(dashboard.data, id)
    dashboard.post_hits({"path": "/", "userAgent": "GPTBot/1.3"}, project=id, key=key)
    shown = view(dashboard, "status=200", id=id)
    statuses = [
        parameters(shown.tab(f"/projects/{id}{page}")).get("status") for page in ("", "/ai", "/errors", "/jobs")
    ]
    assert statuses == [["200"], ["200"], None, None]
    assert shown.period.name == "new"


def test_path_goes_through_a_page_that_has_no_filter_by_path(dashboard: Dashboard) -> None:
    viewer, query = dashboard.visitor("viewer"), "path=%2Fdocs&period=7d"
    assert f"{PATH}/pages?{query}" in Html(viewer.get(f"{PATH}/cost?{query}").text).links()
    assert f"{PATH}/pages?period=7d" in Html(viewer.get(f"{PATH}/page?{query}").text).links()


@pytest.mark.parametrize(
    ("page", "links"),
    [
        ("/why?userAgent=GPTBot/1.3", ["/ai/agents/GPTBot?period=7d"]),
        ("/ai/robots?since=0", ["/ai?period=7d", "/ai/agents/GPTBot?period=7d"]),
        ("/setup?test={now}", ["/keys?period=7d", "/setup?period=7d&test={now}"]),
        ("/keys?", ["/setup?period=7d"]),
        ("/ai/agents/GPTBot?", ["/ai/robots?period=7d"]),
    ],
)
def test_links_of_why_and_settings_keep_the_period(dashboard: Dashboard, page: str, links: list[str]) -> None:
    now = int(datetime.now(UTC).timestamp())
    texts.save(dashboard.engine, PROJECT, "User-agent: GPTBot\nDisallow: /", now)
    html = dashboard.visitor("owner").get(f"{PATH}{page}&period=7d".format(now=now * 1_000)).text
    found = [each.split("#")[0] for each in Html(html).links()]
    for link in (each.format(now=now * 1_000) for each in links):
        assert f"{PATH}{link}" in found
        assert f"{PATH}{link}".split("?")[0] not in found


def test_links_have_the_period_and_filters_and_not_the_place_in_a_table(dashboard: Dashboard) -> None:
    shown = view(dashboard, "period=7d&agent=GPTBot&page=3&sort=ai&utm_source=mail")
    assert parameters(shown.link(f"{PATH}/pages")) == {"period": ["7d"], "agent": ["GPTBot"]}
    assert parameters(shown.link(from_="2026-09-01", period=None)) == {"agent": ["GPTBot"], "from": ["2026-09-01"]}
    of_table = {"period": ["7d"], "agent": ["GPTBot"], "page": ["4"], "sort": ["ai"]}
    assert parameters(shown.table_link(page="4")) == of_table


def test_tabs_have_the_period_the_comparison_and_the_filters(dashboard: Dashboard) -> None:
    query = "period=7d&compare=previous&operator=OpenAI&traffic=ai&page=2&sort=ai&show=new"
    carried = {"period": ["7d"], "compare": ["previous"], "operator": ["OpenAI"], "traffic": ["ai"]}
    shown = view(dashboard, query)
    assert parameters(shown.tab(f"{PATH}/errors")) == carried
    shown.fix(traffic=None)  # the page Pages counts all readers, and the next page may not
    assert parameters(shown.tab(PATH)) == carried
    of_path = view(dashboard, "path=/a&period=7d")
    assert parameters(of_path.tab(f"{PATH}/pages")) == {"path": ["/a"], "period": ["7d"]}
    of_path.fix(path="/a")
    assert parameters(of_path.tab(f"{PATH}/pages")) == {"period": ["7d"]}


TABS = ("", "/ai", "/pages", "/errors", "/cost", "/why", "/setup")
SETTINGS = ("/goals", "/keys", "/share", "/ai/robots", "/jobs")


@pytest.mark.parametrize("page", [*TABS, *SETTINGS])
def test_tabs_of_each_page_lead_to_the_same_days(dashboard: Dashboard, page: str) -> None:
    html = dashboard.visitor("owner").get(f"{PATH}{page}?period=7d&operator=OpenAI&status=500&page=1").text
    for tab in (*TABS, *(SETTINGS if page in {"/setup", *SETTINGS} else ())):
        of_views, own = [each not in {"/errors", "/jobs"} for each in (page, tab)], page == tab
        status = "&status=500" if all(of_views) or own else ""
        assert f"{PATH}{tab}?period=7d&operator=OpenAI{status}" in Html(html).links()


def test_search_of_the_page_why_keeps_the_period(dashboard: Dashboard) -> None:
    html = dashboard.visitor("viewer").get(f"{PATH}/why?period=7d&agent=GPTBot&search=Claude").text
    assert (
        html.count('<input type="hidden" name="agent" value="GPTBot"><input type="hidden" name="period" value="7d">')
        == 2
    )
    assert f"{PATH}/why?period=7d&agent=GPTBot&userAgent=Claude-User" in Html(html).links()


def test_check_of_a_site_keeps_the_period(dashboard: Dashboard) -> None:
    html = dashboard.visitor("viewer").get(f"{PATH}/setup?period=7d&site=https://example.com").text
    assert html.count('<input type="hidden" name="period" value="7d">') == 1


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        ("/pages", "The filter Readers does not apply to this page."),
        ("/cost", "The filters Browser and System do not apply to this page."),
        ("/errors", "The filters Source, Browser and System do not apply to this page."),
        ("", ""),
        ("/ai", ""),
        ("/ai/agents/GPTBot", ""),
    ],
)
def test_page_without_a_filter_says_so(dashboard: Dashboard, page: str, sentence: str) -> None:
    text = Html(dashboard.visitor("viewer").get(f"{PATH}{page}?traffic=ai&source=log&browser=Firefox&os=x").text).text
    assert ("apply to this page" in text, sentence in text) == (bool(sentence), True)
    assert "apply to this page" not in Html(dashboard.visitor("viewer").get(f"{PATH}{page}?agent=GPTBot").text).text


@pytest.mark.parametrize(
    ("page", "title"), [("/ai?traffic=human", "Readers"), ("/ai/agents/GPTBot?agent=ClaudeBot&traffic=ai", "Agent")]
)
def test_page_of_other_readers_than_the_filter_says_so(dashboard: Dashboard, page: str, title: str) -> None:
    text = Html(dashboard.visitor("viewer").get(f"{PATH}{page}").text).text
    assert f"The filter {title} does not apply to this page." in text


def test_hidden_fields_of_a_form_leave_out_the_fields_that_it_sets(dashboard: Dashboard) -> None:
    shown = view(dashboard, "period=7d&path=/a&traffic=ai&page=2")
    assert shown.hidden("path") == {"period": "7d", "traffic": "ai"}


def test_invalid_parameters_are_named_and_ignored(dashboard: Dashboard) -> None:
    shown = view(dashboard, "period=x&traffic=robots&zone=Mars/Base&path=" + "a" * 3_000)
    assert (shown.status, shown.period.name, shown.filters, shown.zone.key) == (400, "30d", Filters(), "UTC")
    assert len(shown.faults) == 4
    assert "There is no time zone “Mars/Base”; the days are in UTC." in shown.faults


def test_query_has_the_filters_with_changes(dashboard: Dashboard) -> None:
    query = view(dashboard, "period=7d&operator=OpenAI").query(traffic="ai")
    assert (query.project, query.filters) == (PROJECT, Filters(operator="OpenAI", traffic="ai"))


def test_previous_period_is_counted_only_if_the_address_asks_for_it(dashboard: Dashboard) -> None:
    assert view(dashboard, "period=7d").previous is None
    previous = view(dashboard, "period=7d&compare=previous").previous
    assert previous is not None
    assert previous.days == 7


def test_filter_of_the_page_itself_is_in_its_counts_and_nowhere_else(dashboard: Dashboard) -> None:
    shown = view(dashboard, "period=7d&agent=GPTBot&traffic=human&source=log")
    shown.fix(traffic="ai", agent="CCBot", operator=None)
    assert shown.query().filters == Filters(traffic="ai", agent="CCBot", source="log")
    assert [chip.parameter for chip in shown.chips] == ["source"]
    assert parameters(shown.link()) == {"period": ["7d"], "source": ["log"]}
    assert shown.hidden() == {"period": "7d", "source": "log"}


def test_page_of_a_table_is_a_number_from_1(dashboard: Dashboard) -> None:
    assert [view(dashboard, query).page_number() for query in ("", "page=7", "page=40000")] == [1, 7, 40_000]
    for wrong in ("0", "-1", "x", "\N{ARABIC-INDIC DIGIT TWO}", "100001", "9" * 30, ""):
        shown = view(dashboard, f"page={quote(wrong)}")
        assert shown.page_number() == 1
        assert shown.faults == [f"There is no page “{wrong[:40]}”; this is the first one."]
