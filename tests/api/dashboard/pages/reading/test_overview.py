"""The overview: its numbers are those of the API for the same query, and an unmeasured number is never 0."""

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import pytest
from starlette.testclient import TestClient

from tests.api.dashboard.days import before, today, with_days
from tests.api.dashboard.html import Html
from tests.api.dashboard.pages.reading.overview.overview_page import FIREFOX, midnight, numbers, page_of, totals
from tests.api.dashboard.site import Dashboard
from tests.processes.running import PROJECT, new_key
from tests.rounds import seeded, some
from warehouse.control import projects

ATTACK = "<script>alert(1)</script>"
UNKNOWN, REMOVE = "\N{EN DASH}", "\N{MULTIPLICATION SIGN}"
NEW_YORK = "America/New_York"


@pytest.fixture(scope="module")
def dashboard(overview_site: Dashboard) -> Dashboard:
    return overview_site


QUERIES: list[tuple[dict[str, str | int], dict[str, str | int]]] = [
    ({}, {"first": 29}),
    ({"period": "7d"}, {"first": 6}),
    ({"period": "today"}, {"first": 0, "interval": "hour"}),
    ({"period": "yesterday"}, {"first": 1, "last": 1, "interval": "hour"}),
    ({"period": "90d", "traffic": "ai"}, {"first": 89, "traffic": "ai"}),
    ({"interval": "week"}, {"first": 29, "interval": "week"}),
    ({"path": "/docs*"}, {"first": 29, "path": "/docs*"}),
    ({"operator": "OpenAI"}, {"first": 29, "operator": "OpenAI"}),
    ({"source": "server"}, {"first": 29, "source": "server"}),
    ({"from": 20, "to": 11, "zone": "Asia/Kolkata"}, {"first": 20, "last": 11, "zone": "Asia/Kolkata"}),
    ({"from": 20, "to": 19, "zone": NEW_YORK}, {"first": 20, "last": 19, "zone": NEW_YORK, "interval": "hour"}),
]
"""Parameters of the page, and the days, filters and interval that they mean. A number is the age of a day, in days."""


KINDS = {"People": "human", "AI": "ai", "Other bots": "bot"}


@pytest.mark.long
@pytest.mark.parametrize(("parameters", "meaning"), QUERIES, ids=str)
def test_numbers_are_those_of_the_api(
    dashboard: Dashboard, viewer: TestClient, parameters: dict[str, str | int], meaning: dict[str, str | int]
) -> None:
    expected = with_days(meaning)
    zone = expected.get("zone", "UTC")
    query = f"dateFrom={midnight(expected['first'], zone)}"
    if "last" in expected:
        query += f"&dateTo={midnight(expected['last'], zone, days=1)}"
    filters = {name: expected[name] for name in ("traffic", "path", "operator", "source") if name in expected}
    query += "".join(f"&{name}={quote(value)}" for name, value in filters.items())
    series = dashboard.get_report(f"series?{query}&interval={expected.get('interval', 'day')}&timezone={zone}")
    views = dashboard.get_report(f"views?{query}&limit=10")
    by_ai = "" if "traffic" in filters else "&traffic=ai"
    operators = dashboard.get_report(f"breakdown?{query}{by_ai}&by=operator&limit=8")

    page = page_of(viewer, **parameters)

    measured = [row[1:] for row in page.rows("Numbers of this chart") if {*row[1:]} != {UNKNOWN}]
    kinds = [KINDS[name] for name in page.tables["Numbers of this chart"][0][1:]]
    in_api = [[each[name] or 0 for name in kinds] for each in series["series"]]
    assert list(map(numbers, measured)) == in_api[len(in_api) - len(measured) :]
    assert not any(sum(each) for each in in_api[: len(in_api) - len(measured)])
    page_totals = totals(page)
    assert numbers([page_totals["People"], page_totals["AI"], page_totals["Other bots"]]) == [
        series["totals"][name] for name in ("human", "ai", "bot")
    ]
    assert [(row[0], *numbers(row[1:])) for row in page.rows("Top pages")] == [
        (each["path"], each["human"], each["ai"], each["total"]) for each in views["views"]
    ]
    assert [(row[0], *numbers(row[1:2])) for row in page.rows("AI operators")] == [
        (each["value"], each["ai"]) for each in operators["rows"]
    ]


@pytest.mark.long
def test_readers_that_a_filter_leaves_out_have_no_number(viewer: TestClient) -> None:
    for filter, unknown in {
        "operator=OpenAI": ["People", "Other bots"],
        "agent=GPTBot": ["People"],
        "agent=Googlebot": ["People"],
        "purpose=training": ["People", "Other bots"],
        "traffic=human": ["AI", "Other bots"],
        "traffic=bot": ["People", "AI"],
        "traffic=ai": ["People", "Other bots"],
        "path=/docs*": [],
    }.items():
        name, _, value = filter.partition("=")
        page = page_of(viewer, **{name: value})
        page_totals = totals(page)
        visits = ["Visits from AI"] if name in {"agent", "purpose"} or filter in {"traffic=ai", "traffic=bot"} else []
        assert ("Pages that AI sends visits to" in page.text) is not bool(visits)
        assert {name for name, number in page_totals.items() if number == UNKNOWN} == {*unknown, *visits}, filter
        assert page.text.count(f" {UNKNOWN} not part of this filter") == len(unknown + visits)
        for column, kind in enumerate(("People", "AI"), start=1):
            cells = {row[column] for heading in ("Top pages", "Sources") for row in page.rows(heading) if len(row) > 2}
            assert (cells <= {UNKNOWN}) is (kind in unknown)
        drawn = {*page.tables["Numbers of this chart"][0][1:]}
        selected = {*page_totals} - {*unknown, "Visits from AI"}
        assert drawn == (selected - {"Other bots"} or selected)


@pytest.mark.long
def test_tables_of_readers_that_a_filter_leaves_out_are_not_shown(viewer: TestClient) -> None:
    page = page_of(viewer, operator="OpenAI")
    assert page.rows("AI operators")
    assert "Referrers" not in page.text.partition("Top pages")[2]
    assert "AI operators" not in page_of(viewer, traffic="human").text.partition("Top pages")[2]
    assert page.tables["AI operators"][0] == ["Operator", "Reads", "Visits", "Reads per visit"]
    assert page_of(viewer, traffic="ai").tables["AI operators"][0] == ["Operator", "Reads"]
    bots = page_of(viewer, traffic="bot")
    assert int(totals(bots)["Other bots"]) > 0
    assert "No page was read" not in bots.text
    assert {*bots.tables} == {"Numbers of this chart", "Sources", "Download"}


def test_tables_of_people_are_those_of_the_api(dashboard: Dashboard, viewer: TestClient) -> None:
    for by, heading, tabs, unknown in (
        ("referrerHost", "Referrers", {}, "Direct or unknown"),
        ("channel", "Channels", {"origins": "channels"}, "Unknown"),
        ("browser", "Browsers", {}, "Unknown"),
        ("os", "Operating systems", {"devices": "systems"}, "Unknown"),
    ):
        rows = dashboard.get_report(f"breakdown?dateFrom={before(29)}&traffic=human&limit=8&by={by}")["rows"]
        assert len(rows) >= 2
        assert [(row[0], *numbers(row[1:])) for row in page_of(viewer, **tabs).rows(heading)] == [
            (each["value"] or unknown, each["human"]) for each in rows
        ]


@pytest.mark.long
def test_campaigns_are_those_of_the_api_without_views_that_have_none(dashboard: Dashboard, viewer: TestClient) -> None:
    rows = dashboard.get_report(f"breakdown?dateFrom={before(29)}&traffic=human&by=utmSource")["rows"]
    named = [[each["value"], str(each["human"])] for each in rows if each["value"]]
    assert 1 < len(named) == len(rows) - 1
    assert page_of(viewer, origins="campaigns").rows("Campaigns by source") == named
    assert "from a link with utm_source" in page_of(viewer, path="/nowhere", origins="campaigns").text


def test_campaigns_are_listed_by_each_utm_parameter(dashboard: Dashboard, viewer: TestClient) -> None:
    key = new_key(dashboard.data, "mailings")
    queries = ("utm_source=a&utm_medium=b&utm_campaign=c&utm_term=d&utm_content=e", "utm_medium=b&utm_content=f", "")
    views = [{"path": f"/?{query}", "userAgent": FIREFOX} for query in queries]
    dashboard.post_hits(*views, project="mailings", key=key)
    for name, title, rows in (
        ("campaigns", "source", [["a", "1"]]),
        ("media", "medium", [["b", "2"]]),
        ("names", "name", [["c", "1"]]),
        ("terms", "term", [["d", "1"]]),
        ("contents", "content", [["e", "1"], ["f", "1"]]),
    ):
        page = page_of(viewer, "mailings", origins=name)
        assert page.rows(f"Campaigns by {title}") == rows
        choices = " ".join(field.capitalize() for field in ("source", "medium", "campaign", "term", "content"))
        assert f"Channels Campaigns {choices} UTM" in page.text
        current = [link.get("href") for tag, link in page.tags if tag == "a" and "aria-current" in link]
        assert f"/projects/mailings?origins={name}" in current
        assert "/projects/mailings?origins=campaigns" in current
        assert any("export.csv" in link and f"report={name}" in link for link in page.links())


@pytest.mark.long
def test_referrers_are_as_many_as_without_links_of_the_site_itself(dashboard: Dashboard, viewer: TestClient) -> None:
    key = new_key(dashboard.data, "linked")
    projects.set_origins(dashboard.engine, "linked", ("https://linked.example",))
    hosts = ["linked.example", *(f"from{number}.example" for number in range(8))]
    views = [{"path": "/", "userAgent": FIREFOX, "referrer": f"https://{host}/"} for host in (*hosts, hosts[0])]
    dashboard.post_hits(*views, project="linked", key=key)
    assert page_of(viewer, "linked").rows("Referrers") == [[host, "1"] for host in hosts[1:]]
    text = viewer.get("/projects/linked").text
    assert '<section class="card" id="origins">' in text
    assert '<section class="card slim" id="places">' in text, "a card without a row is one line"


@pytest.mark.long
def test_only_an_interval_that_has_not_ended_is_partial(viewer: TestClient) -> None:
    for period in ("7d", "yesterday"):  # not today, whose last hour may have begun after the last hit
        text = viewer.get(f"/projects/{PROJECT}?period={period}").text
        assert (
            ("partial" in text) is ('<span class="chart-key partial"></span>Incomplete day' in text) is (period == "7d")
        )


@pytest.mark.long
def test_pages_are_sorted_and_paged(dashboard: Dashboard, viewer: TestClient) -> None:
    views = dashboard.get_report(f"views?dateFrom={before(29)}")["views"]
    for sort, key in (("people", "human"), ("ai", "ai"), ("views", "total")):
        expected = [each["path"] for each in sorted(views, key=lambda each: (-each[key], each["path"]))]
        assert len(expected) == 12
        for number, ranks in (("1", slice(0, 10)), ("2", slice(10, 12))):
            page = page_of(viewer, sort=sort, page=number)
            assert [row[0] for row in page.rows("Top pages")] == expected[ranks]
    assert "There are no more pages" in page_of(viewer, page="3").text


def test_search_filters_by_a_part_or_the_beginning_with_the_other_filters(viewer: TestClient) -> None:
    paths = {"blog": "*blog*", " og/1 ": "*og/1*", "*blog*": "*blog*", "/blog": "/blog*", "/blog/*": "/blog/*"}
    for text, path in paths.items():
        response = viewer.get(f"/projects/{PROJECT}", params={"search": text, "traffic": "ai", "page": "7"})
        assert response.status_code == 303
        assert parse_qs(urlsplit(response.headers["location"]).query) == {"path": [path], "traffic": ["ai"]}
    for text in ("", "*", "  "):
        response = viewer.get(f"/projects/{PROJECT}", params={"search": text, "path": "/blog*"})
        assert response.headers["location"] == f"/projects/{PROJECT}"


@pytest.mark.long
def test_click_on_a_value_of_any_table_filters_all_numbers(dashboard: Dashboard, viewer: TestClient) -> None:
    links = page_of(viewer, period="7d").links()
    for tab in ("devices", "systems"):
        links += page_of(viewer, period="7d", devices=tab).links()
    for name in ("path", "operator", "source", "referrerHost", "device", "browser", "os"):
        link = next(link for link in links if f"&{name}=" in link)
        value = parse_qs(urlsplit(link).query)[name][0]
        page = Html(viewer.get(link).text)
        assert [attributes.get("class") for _, attributes in page.tags].count("chip") == 1
        counted = dashboard.get_report(f"series?{urlencode({name: value})}&dateFrom={before(6)}")["totals"]
        known = {label: number for label, number in totals(page).items() if number != UNKNOWN and label in KINDS}
        assert {label: str(counted[KINDS[label]]) for label in known} == known
        assert counted["total"] > 0


@pytest.mark.long
def test_filters_of_two_dimensions_combine_and_are_removed_together(viewer: TestClient) -> None:
    page = page_of(viewer, browser="Firefox", status="200", period="7d")
    assert f"Browser: Firefox {REMOVE}" in page.text
    assert f"Status: 200 {REMOVE}" in page.text
    assert f"/projects/{PROJECT}?period=7d" in page.links()
    assert f"AI {UNKNOWN} not part of this filter" in page.text  # AI agents have no browser


def test_filters_are_chips_that_remove_them(viewer: TestClient) -> None:
    page = page_of(viewer, operator="OpenAI", source="server", period="7d")
    chips = [attributes for tag, attributes in page.tags if tag == "a" and attributes.get("class") == "chip"]
    assert [chip["aria-label"] for chip in chips] == [
        "Remove the filter Operator: OpenAI",
        "Remove the filter Source: Your server",
    ]
    assert parse_qs(urlsplit(chips[0]["href"] or "").query) == {"source": ["server"], "period": ["7d"]}


@pytest.mark.long
def test_filter_by_one_page_leads_to_its_page(viewer: TestClient) -> None:
    assert f"/projects/{PROJECT}/page?path=%2Fdocs%2F1" in page_of(viewer, path="/docs/1").links()
    assert not [link for link in page_of(viewer, path="/docs/*").links() if "/page?" in link]


@pytest.mark.long
def test_live_count_has_the_hits_of_the_last_minutes(dashboard: Dashboard, viewer: TestClient) -> None:
    key = new_key(dashboard.data, "live")
    old = (datetime.now(UTC) - timedelta(minutes=31)).isoformat()
    dashboard.post_hits(
        {"path": "/a", "userAgent": FIREFOX},
        {"path": "/a", "userAgent": "GPTBot/1.3"},
        {"path": "/b", "userAgent": "GPTBot/1.3"},
        {"path": "/a", "userAgent": FIREFOX, "timestamp": old},
        project="live",
        key=key,
    )
    assert Html(viewer.get("/projects/live/live").text).text == "Last 30 minutes: 1 by people, 2 by AI"
    assert Html(viewer.get("/projects/live/live?path=/b").text).text == "Last 30 minutes: 0 by people, 1 by AI"
    assert "Last 30 minutes: 1 by people, 2 by AI" in page_of(viewer, "live").text


WRONG: list[dict[str, str]] = [
    {"from": "0001-01-01", "to": "9999-12-31"},
    {"zone": "../../etc/passwd"},
    {"purpose": "fun"},
    {"path": "x" * 5_000},
    {"agent": "x" * 500},
    {"operator": "\x00"},
    *({name: ATTACK} for name in ("page", "sort", "period", "interval", "zone", "from", "traffic", "source")),
]
"""Other values are in `web/test_period` and `web/test_view`."""


@pytest.mark.long
def test_invalid_parameter_is_named_on_the_page(viewer: TestClient) -> None:
    for parameters in WRONG:
        response = viewer.get(f"/projects/{PROJECT}?{urlencode(parameters)}")
        assert response.status_code == 400, parameters
        assert 'role="alert"' in response.text
        assert ATTACK not in response.text
        assert "Top pages" in response.text


@pytest.mark.long
def test_unknown_parameters_of_other_sites_are_ignored(viewer: TestClient) -> None:
    page = page_of(viewer, compare="nothing", utm_source="mail", report="x")
    assert totals(page) == totals(page_of(viewer))


@pytest.mark.long
def test_all_time_with_an_early_hit_is_a_page(dashboard: Dashboard, viewer: TestClient) -> None:
    early = (datetime.now(UTC) - timedelta(days=300)).isoformat()
    hits = [{"path": "/a", "userAgent": FIREFOX, "timestamp": early}]
    dashboard.post_hits(*hits, project="early", key=new_key(dashboard.data, "early"))
    for interval in ("hour", "day", "week", "month"):
        assert totals(page_of(viewer, "early", period="all", interval=interval))["People"] == "1"


@pytest.mark.long
def test_texts_of_strangers_are_escaped(dashboard: Dashboard, viewer: TestClient) -> None:
    dashboard.post_hits(
        {"path": f"/{ATTACK}", "userAgent": FIREFOX, "referrer": f"https://evil.example/{ATTACK}"},
        {"path": "/\"onmouseover='alert(1)", "userAgent": f"GPTBot/1.3 {ATTACK}"},
        {"path": "/{{ 7919*7907 }}", "userAgent": FIREFOX, "referrer": "https://<img src=x onerror=alert(1)>/"},
        project="attacked",
        key=new_key(dashboard.data, "attacked"),
    )
    response = viewer.get("/projects/attacked")
    page = Html(response.text)
    assert ATTACK not in response.text
    assert len(page.rows("Top pages")) == 3
    assert str(7919 * 7907) not in response.text
    assert not [tag for tag, attributes in page.tags if any(name.startswith("on") for name in attributes)]
    assert not [link for link in page.links() if not link.startswith(("/", "#"))]
    assert all("src" in attributes for tag, attributes in page.tags if tag == "script")


@pytest.mark.long
def test_every_link_to_the_overview_opens_it(viewer: TestClient) -> None:
    links = {link for link in page_of(viewer).links() if link.startswith(f"/projects/{PROJECT}?")}
    assert len(links) > 20
    for link in some(seeded(1), sorted(links), 12):
        assert viewer.get(link).status_code == 200, link


def test_days_are_in_the_locale_of_the_viewer(viewer: TestClient) -> None:
    german = viewer.get(f"/projects/{PROJECT}", headers={"Accept-Language": "de-DE"})
    first = today() - timedelta(days=29)
    assert f" {first.day}. " in Html(german.text).rows("Numbers of this chart")[0][0]


@pytest.mark.long
def test_page_with_a_month_of_hours_that_are_compared_is_light_on_the_wire(viewer: TestClient) -> None:
    response = viewer.get(f"/projects/{PROJECT}?from={before(30)}&to={before(0)}&interval=hour&compare=previous")
    page = Html(response.text)
    assert len(page.rows("Numbers of this chart")) > 29 * 24
    assert int(response.headers["content-length"]) < 18_000


@pytest.mark.long
def test_visits_from_the_pages_of_the_site_are_no_referrers(dashboard: Dashboard) -> None:
    key = new_key(dashboard.data, "own-pages")
    projects.set_origins(dashboard.engine, "own-pages", ("https://own.example", "http://other.example:8000", "*"))
    for host in ("own.example", "other.example", "www.own.example", "news.example"):
        dashboard.post_hits(
            {"path": "/", "userAgent": FIREFOX, "referrer": f"https://{host}/a"}, project="own-pages", key=key
        )
    for tab, rows in (("referrers", ["news.example", "www.own.example"]), ("channels", ["Referral"])):
        page = page_of(dashboard.visitor("viewer"), "own-pages", origins=tab)
        assert page.rows(tab.capitalize()) == [[row, "1"] for row in rows]
        assert "Views that followed a link within the site" in page.text
