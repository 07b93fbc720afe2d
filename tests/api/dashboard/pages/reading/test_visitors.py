"""Visitors and visits on the overview: the numbers are those of the API, and an unknown visitor is never 0."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from api.dashboard.web import locale
from tests.api.dashboard.html import Html
from tests.api.dashboard.pages.reading.overview.overview_page import FIREFOX, page_of
from tests.api.dashboard.site import Dashboard, opened
from tests.processes.running import PROJECT, new_key, readership_process
from warehouse.report.audience import visitors

NUMBERS = ("visitors", "visits", "bounceRate", "visitDuration")


@cache
def begin() -> datetime:
    """Return the time at which the first test began."""
    return datetime.now(UTC)


def post(
    dashboard: Dashboard,
    *hits: tuple[timedelta, str | None, str, str],
    project: str = PROJECT,
    now: datetime | None = None,
) -> None:
    """Store hits: their age, address, user agent and path."""
    key = None if project == PROJECT else new_key(dashboard.data, project)
    dashboard.post_hits(
        *(
            {"path": path, "userAgent": agent, "timestamp": ((now or begin()) - age).isoformat()}
            | ({"address": address} if address else {})
            for age, address, agent, path in hits
        ),
        project=project,
        key=key,
    )


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    with opened(tmp_path_factory.mktemp("visitors") / "data") as opened_dashboard:
        days = [(timedelta(days=day, hours=1), f"203.0.113.{day % 3}", FIREFOX, f"/{day % 2}") for day in range(20)]
        post(opened_dashboard, *days, (timedelta(days=15), None, FIREFOX, "/"))
        post(opened_dashboard, *((timedelta(days=day), "198.51.100.7", "GPTBot/1.3", "/") for day in range(16)))
        yield opened_dashboard


@pytest.mark.long
def test_visitors_and_visits_are_those_of_the_api_with_their_change(dashboard: Dashboard, viewer: TestClient) -> None:
    metrics = f"metrics={','.join(NUMBERS)}"
    now, before = (
        dashboard.get_report(f"series?{metrics}&dateFrom={first.date()}&dateTo={(first + timedelta(days=7)).date()}")
        for first in (begin() - timedelta(days=7), begin() - timedelta(days=14))
    )
    text = page_of(viewer, from_=7, to=1).text
    for name, key in (("Visitors", "human"), ("AI clients", "ai")):
        count, then = now["totals"]["visitors"][key], before["totals"]["visitors"][key]
        assert f"{name} {count} 0% compared with the previous period: {then}" in text
    assert f"Visits {now['totals']['visits']} 0%" in text
    assert now["totals"]["bounceRate"] is now["totals"]["visitDuration"] is None
    assert "Bounce rate \N{EN DASH} only the website script knows it" in text
    assert "A person who comes on two days counts twice." in text
    assert "counts twice" not in page_of(viewer, period="today").text


@pytest.mark.long
def test_comparison_of_a_period_until_now_ends_at_this_time_of_day(dashboard: Dashboard, viewer: TestClient) -> None:
    page = page_of(viewer, period="7d", compare="previous")
    end = begin() - timedelta(days=7)
    days = " \N{EN DASH} ".join(
        locale.day(each.date(), locale.DEFAULT) for each in (begin() - timedelta(days=13), begin() - timedelta(days=7))
    )
    assert f"Previous period: {days}, until " in page.text
    assert f"/projects/{PROJECT}/setup?period=7d&compare=previous#not-measured" in page.links()
    start = (begin() - timedelta(days=13)).date()
    api = dashboard.get_report(f"series?dateFrom={start}&dateTo={end.isoformat().replace('+00:00', 'Z')}")["totals"]
    assert f"compared with the previous period: {api['human']} Visitors" in page.text


@pytest.mark.long
def test_visitors_that_are_known_in_a_part_of_the_period_have_their_first_day(dashboard: Dashboard) -> None:
    ages = [(timedelta(days=20), None), (timedelta(days=5), "203.0.113.9"), (timedelta(days=4), "203.0.113.9")]
    post(dashboard, *((age, address, FIREFOX, "/") for age, address in ages), project="part")
    reads = ((timedelta(days=3), address, "GPTBot/1.3", "/ai") for address in (None, "198.51.100.7", "198.51.100.7"))
    post(dashboard, *reads, project="part")
    first, of_ai = (
        locale.day((begin() - timedelta(days=5)).date(), locale.DEFAULT),
        "AI clients are known for 67% of the reads by AI.",
    )
    viewer = dashboard.visitor("viewer")
    text = page_of(viewer, "part").text
    assert f"Visitors are known since {first}. Visitors are known for 67% of the views by people. {of_ai}" in text
    assert of_ai in page_of(viewer, "part", path="/ai").text


@pytest.mark.long
def test_without_an_address_visitors_are_not_counted(dashboard: Dashboard) -> None:
    post(dashboard, (timedelta(days=1), None, FIREFOX, "/"), project="unknown")
    text = page_of(dashboard.visitor("viewer"), "unknown").text
    assert "Visitors \N{EN DASH} not counted in this period" in text
    assert "Bounce rate" not in text


def test_visitors_of_whom_no_view_has_an_address_are_unknown(dashboard: Dashboard) -> None:
    day = timedelta(days=1)
    post(dashboard, (day, None, FIREFOX, "/"), (day, "203.0.113.9", "GPTBot/1.3", "/"), project="unaddressed")
    text = page_of(dashboard.visitor("viewer"), "unaddressed").text
    assert "Visitors \N{EN DASH} not known for these views" in text
    assert "AI clients 1" in text
    assert "Visits 0" not in text
    assert "Visitors are known for" not in text
    post(dashboard, (day, "203.0.113.9", FIREFOX, "/"), (day, None, "GPTBot/1.3", "/"), project="unaddressed-ai")
    text = page_of(dashboard.visitor("viewer"), "unaddressed-ai").text
    assert "Visitors 1" in text
    assert "AI clients \N{EN DASH} not known for these views" in text


@pytest.mark.long
def test_share_of_known_visitors_that_is_rounded_to_0_is_named(dashboard: Dashboard) -> None:
    views = [(timedelta(days=1), None, FIREFOX, "/")] * 2_100
    post(dashboard, (timedelta(days=1), "203.0.113.9", FIREFOX, "/"), *views, project="rounded")
    text = page_of(dashboard.visitor("viewer"), "rounded").text
    assert "Visitors 1" in text
    assert "Visitors are known for less than 0.2% of the views by people." in text


def test_live_count_is_of_the_distinct_visitors_of_five_minutes(dashboard: Dashboard) -> None:
    hits = [(2, "203.0.113.1"), (1, "203.0.113.1"), (1, "203.0.113.2"), (8, "203.0.113.3")]
    people = ((timedelta(minutes=age), address, FIREFOX, "/") for age, address in hits)
    post(
        dashboard,
        *people,
        (timedelta(minutes=1), "203.0.113.1", "GPTBot/1.3", "/"),
        project="live",
        now=datetime.now(UTC),
    )
    viewer = dashboard.visitor("viewer")
    assert Html(viewer.get("/projects/live/live").text).text == "Last 5 minutes: 2 people, 1 AI client"
    assert Html(viewer.get("/projects/live/live?traffic=ai").text).text == "Last 5 minutes: 1 AI client"


def test_live_count_is_of_views_if_the_visitors_of_five_minutes_are_unknown(dashboard: Dashboard) -> None:
    ages, now = [(20, "203.0.113.1"), (1, None)], datetime.now(UTC)
    hits = [(timedelta(minutes=age), address, FIREFOX, "/") for age, address in ages]
    post(dashboard, *hits, project="live-unknown", now=now)
    text = Html(dashboard.visitor("viewer").get("/projects/live-unknown/live").text).text
    assert text == "Last 30 minutes: 2 by people, 0 by AI"


def test_live_count_leaves_out_ai_clients_alone_if_only_these_are_unknown(dashboard: Dashboard) -> None:
    hits = (("203.0.113.1", FIREFOX), (None, "GPTBot/1.3"), ("198.51.100.7", "GPTBot/1.3"))
    ages = (timedelta(minutes=1), timedelta(minutes=1), timedelta(minutes=20))
    rows = ((age, *hit, "/") for age, hit in zip(ages, hits, strict=True))
    post(dashboard, *rows, project="live-one-unknown", now=datetime.now(UTC))
    text = Html(dashboard.visitor("viewer").get("/projects/live-one-unknown/live").text).text
    assert text == "Last 5 minutes: 1 person"


@pytest.mark.long
def test_page_with_too_many_views_names_them_as_the_cause(
    dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, viewer = "many", dashboard.visitor("viewer")
    post(dashboard, (timedelta(minutes=8), "203.0.113.1", FIREFOX, "/"), project=project, now=datetime.now(UTC))
    filters = {"browser": "Firefox", "path": "/"}
    monkeypatch.setattr(visitors, "VIEWS_MAX", -1)
    text = page_of(viewer, project, pages="entry", **filters).text
    assert "Visitors are counted for shorter periods only, because of these filters." in text
    assert "Last 30 minutes: 1 by people" in text
    assert "Last 30 minutes: 1 by people" in Html(viewer.get(f"/projects/{project}/live", params=filters).text).text


@pytest.mark.long
def test_reason_of_no_bounce_rate_is_that_of_the_sources(dashboard: Dashboard) -> None:
    viewer = dashboard.visitor("viewer")
    post(dashboard, *((timedelta(days), "203.0.113.1", FIREFOX, "/") for days in (0, 1)), project="with-script")
    hit, headers = {"url": "https://example.com/"}, {"User-Agent": FIREFOX, "Origin": "https://example.com"}
    assert dashboard.client.post("/v1/analytics/with-script/hits", json=hit, headers=headers).is_success
    for parameters in ({"country": "DE"}, {"from_": 1, "to": 1}):
        text = page_of(viewer, "with-script", **parameters).text
        assert "Bounce rate \N{EN DASH} the website script saw no visit" in text
        assert "are known for the 0 visits" not in text
    assert page_of(viewer, "with-script", period="today").text.count("that both") == 1
    text = page_of(viewer, "with-script", source="server").text
    assert "Bounce rate \N{EN DASH} only the website script knows it" in text


@pytest.mark.long
@pytest.mark.parametrize(("tab", "by"), [("entry", "entryPage"), ("exit", "exitPage")])
def test_entry_and_exit_pages_have_their_visits(dashboard: Dashboard, viewer: TestClient, tab: str, by: str) -> None:
    days = f"dateFrom={(begin() - timedelta(days=7)).date()}&dateTo={begin().date()}"
    rows = dashboard.get_report(f"breakdown?by={by}&metrics=visits&{days}")["rows"]
    page = page_of(viewer, from_=7, to=1, pages=tab)
    shown = page.rows(f"{tab.capitalize()} pages")
    assert sorted(shown) == sorted([row["value"], str(row["visits"])] for row in rows)
    assert len(shown) == 2
    for path, visits in shown:
        assert any(f"{by}={quote(path, safe='')}" in each for each in page.links())
        filtered = page_of(viewer, from_=7, to=1, pages=tab, **{by: path})
        assert filtered.rows(f"{tab.capitalize()} pages") == [[path, visits]]
        chip = f"Remove the filter {tab.capitalize()} page: {path}"
        assert chip in [attributes.get("aria-label") for _, attributes in filtered.tags]
    assert "Top pages" not in page.tables


def test_countries_and_languages_have_names(dashboard: Dashboard) -> None:
    assert [locale.territory(code) for code in ("DE", "XX")] == ["Germany", "XX"]
    languages = {"en": "English", "pt-BR": "Portuguese (Brazil)", "x": "x", "tlh-Q": "tlh-Q"}
    assert {tag: locale.language(tag) for tag in languages} == languages


@pytest.mark.long
def test_people_who_are_all_confirmed_or_not_measured_are_named(dashboard: Dashboard, tmp_path: Path) -> None:
    viewer, log = dashboard.visitor("viewer"), tmp_path / "access.log"
    at = f"{begin() - timedelta(hours=2):%d/%b/%Y:%H:%M:%S} +0000"
    for project, paths, expected in (
        ("all-confirmed", ("/a", "/style.css", "/b"), "People: 2 views confirmed."),
        ("not-measured", ("/a", "/b"), "People: 0 views confirmed, 2 not measured."),
    ):
        new_key(dashboard.data, project)
        log.write_text(
            "".join(f'203.0.113.1 - - [{at}] "GET {path} HTTP/1.1" 200 10 "-" "{FIREFOX}"\n' for path in paths)
        )
        assert readership_process("--data", str(dashboard.data), "import", project, str(log)).returncode == 0
        assert expected in Html(viewer.get(f"/projects/{project}?period=7d").text).text


@pytest.mark.long
def test_evidence_countries_and_languages_have_the_first_day_from_which_they_are_known(
    dashboard: Dashboard, tmp_path: Path
) -> None:
    viewer, log, key = dashboard.visitor("viewer"), tmp_path / "access.log", new_key(dashboard.data, "since")
    days = {age: begin() - timedelta(days=age) for age in (5, 4, 3, 2)}
    headers = {4: {"CF-IPCountry": "DE"}, 3: {"Accept-Language": "de-AT"}}
    hits = [
        {"path": "/", "userAgent": FIREFOX, "address": "203.0.113.9", "timestamp": at.isoformat()}
        | {"headers": headers.get(age, {})}
        for age, at in days.items()
    ]
    dashboard.post_hits(*hits, project="since", key=key)
    of_tables = [page_of(viewer, "since", places=name).text for name in ("countries", "languages")]
    assert "measured since" not in of_tables[0]
    line = f'203.0.113.8 - - [{days[2]:%d/%b/%Y:%H:%M:%S} +0000] "GET {{}} HTTP/1.1" 200 10 "-" "{FIREFOX}"\n'
    log.write_text(line.format("/a") + line.format("/style.css"))
    assert readership_process("--data", str(dashboard.data), "import", "since", str(log)).returncode == 0
    of_tables.append(page_of(viewer, "since").text)
    expected = {"Countries are known": 4, "Languages are known": 3, "Evidence is measured": 2}
    for text, (sentence, age) in zip(of_tables, expected.items(), strict=True):
        assert f"{sentence} since {locale.day(days[age].date(), locale.DEFAULT)}." in text
    assert "known since" not in page_of(viewer, "since", places="countries", from_=4, to=4).text


@pytest.mark.long
def test_proxy_that_hides_the_addresses_of_a_log_has_a_warning_at_import_in_coverage_and_on_pages(
    dashboard: Dashboard, tmp_path: Path
) -> None:
    log, key, day = tmp_path / "access.log", new_key(dashboard.data, "proxied"), begin().date()
    line = f'{{}} - - [{begin():%d/%b/%Y:%H:%M:%S} +0000] "GET / HTTP/1.1" 200 10 "-" "{FIREFOX} {{}}"\n'
    data, warning = ("--data", str(dashboard.data)), "most of the views that {} had on 1 day, the last of them"
    for count, is_warned in ((49, False), (60, True)):
        log.write_text("".join(line.format(f"198.51.100.{host}", host) for host in range(100 - count)))
        with log.open("a") as file:
            file.writelines(line.format("192.0.2.1", number % 7) for number in range(count))
        done = readership_process(*data, "import", "proxied", str(log))
        assert done.returncode == 0
        assert (f"Warning: {warning.format('log')} {day}, came from one address" in done.stderr) == is_warned
        assert "no evidence of a person" not in done.stderr
    headers = {"Authorization": f"Bearer {key}"}
    (text,) = dashboard.client.get("/v1/analytics/proxied/coverage", headers=headers).json()["warnings"]
    assert text.startswith(f"{warning.format('log')} {day}, came from one address")
    assert "came from one address with several user agents" in page_of(dashboard.visitor("viewer"), "proxied").text


@pytest.mark.long
def test_people_without_evidence_are_named_and_lead_to_their_views(dashboard: Dashboard, tmp_path: Path) -> None:
    viewer, log = dashboard.visitor("viewer"), tmp_path / "access.log"
    new_key(dashboard.data, "with-assets")
    at = f"{begin() - timedelta(hours=2):%d/%b/%Y:%H:%M:%S} +0000"
    asked = [(1, "/a"), (1, "/style.css"), (1, "/b"), (2, "/a"), (3, "/a"), (3, "/b")]
    lines = (f'203.0.113.{host} - - [{at}] "GET {path} HTTP/1.1" 200 10 "-" "{FIREFOX}"\n' for host, path in asked)
    log.write_text("".join(lines))
    assert readership_process("--data", str(dashboard.data), "import", "with-assets", str(log)).returncode == 0
    page = Html(viewer.get("/projects/with-assets?period=7d").text)
    assert "People: 2 views confirmed, 3 without evidence" in page.text
    (link,) = (each for each in page.links() if "evidence=none" in each)
    assert "Views by people 3" in Html(viewer.get(link).text).text
    assert "without evidence" not in page_of(viewer, from_=7, to=1).text  # without a log with assets
