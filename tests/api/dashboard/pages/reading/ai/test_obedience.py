"""Violations of robots.txt by version: a month of an access log with three texts, and agents that read them late."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from starlette.testclient import TestClient

from api.dashboard.pages.reading.ai import obedience
from api.dashboard.robots import texts
from tests.api.dashboard.html import Html
from tests.api.dashboard.site import FIREFOX, Dashboard, opened
from tests.processes.running import PROJECT, readership_process

DASH = "\N{EN DASH}"
AGENTS = {"Firefox": FIREFOX, "GPTBot": "GPTBot/1.3", "ClaudeBot": "ClaudeBot/1.0", "CCBot": "CCBot/2.0"}
TEXTS = {  # day and hour of September 2026
    (-30, 0): "User-agent: *\nDisallow: /private\n",  # before the log begins
    (1, 0): "User-agent: *\nDisallow: /none\n",
    (10, 12): "User-agent: *\nDisallow: /private\n",
    (20, 12): "User-agent: *\nDisallow: /\n",
}
LOG = [  # day, hour, agent, path, status
    (1, 9, "Firefox", "/open", 200),
    (2, 9, "GPTBot", "/robots.txt", 200),
    (3, 9, "GPTBot", "/private", 200),  # allowed by the first text
    (11, 9, "GPTBot", "/private", 200),  # before its first request for the second text
    (12, 9, "GPTBot", "/robots.txt", 503),  # has not got it
    (12, 10, "GPTBot", "/private", 200),
    (13, 9, "GPTBot", "/robots.txt", 304),
    (13, 10, "GPTBot", "/private", 200),
    (14, 9, "GPTBot", "/private", 200),
    (14, 10, "GPTBot", "/open", 200),  # allowed
    (21, 9, "GPTBot", "/open", 200),  # has never requested the third text
    (10, 11, "ClaudeBot", "/robots.txt", 200),  # the first text, an hour before the second one
    (10, 13, "ClaudeBot", "/private", 200),
    (10, 14, "ClaudeBot", "/robots.txt", 200),
    (10, 15, "ClaudeBot", "/private", 200),
    (21, 9, "ClaudeBot", "/open", 200),
    (22, 13, "ClaudeBot", "/robots.txt", 200),  # and then obeys
    (21, 9, "CCBot", "/open", 200),
    (21, 10, "CCBot", "/robots.txt", 200),
    (21, 11, "CCBot", "/open", 200),
    (22, 9, "CCBot", "/private", 200),
    (28, 9, "Firefox", "/open", 200),
]
VIOLATIONS = {  # reads of disallowed pages before and after the first request for each text, the newest text first
    "GPTBot": [("never", "1", "0"), ("Sep 13, 2026", "2", "2"), ("Sep 2, 2026", "0", "0")],
    "ClaudeBot": [("Sep 22, 2026", "1", "0"), ("Sep 10, 2026", "1", "1"), ("Sep 10, 2026", "0", "0")],
    "CCBot": [("Sep 21, 2026", "1", "2"), ("never", "0", "0"), ("never", "0", "0")],
}
STATES = {
    "GPTBot": "Disallowed, has not read robots.txt since Sep 20, 2026",
    "ClaudeBot": "Disallowed, no read since Sep 22, 2026",
    "CCBot": "Disallowed, still reading",
}


def line(day: int, hour: int, agent: str, path: str, status: int) -> str:
    at = datetime(2026, 9, day, hour, tzinfo=UTC)
    return f'192.0.2.1 - - [{at:%d/%b/%Y:%H:%M:%S +0000}] "GET {path} HTTP/1.1" {status} 9 "-" "{AGENTS[agent]}"\n'


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    folder = tmp_path_factory.mktemp("obedience")
    (folder / "access.log").write_text("".join(line(*each) for each in sorted(LOG)))
    with opened(folder / "data") as dashboard:
        command = ("--data", str(dashboard.data), "import", PROJECT, str(folder / "access.log"))
        assert readership_process(*command).returncode == 0
        for (day, hour), content in TEXTS.items():
            since = datetime(2026, 9, 1, hour, tzinfo=UTC) + timedelta(days=day - 1)
            texts.save(dashboard.engine, PROJECT, content, int(since.timestamp()))
        yield dashboard


@pytest.fixture
def viewer(site: Dashboard) -> TestClient:
    return site.visitor("viewer")


def page(viewer: TestClient, path: str, first: int | str = 1, last: int = 30) -> Html:
    start = first if isinstance(first, str) else f"2026-09-{first:02}"
    response = viewer.get(f"/projects/{PROJECT}{path}?from={start}&to=2026-09-{last:02}&zone=UTC")
    assert response.status_code == 200, response.text
    return Html(response.text)


def versions(shown: Html) -> list[tuple[str, ...]]:
    return [tuple(row[1:]) for row in shown.rows("robots.txt")]


@pytest.mark.parametrize("agent", VIOLATIONS)
def test_violation_is_a_read_after_the_first_request_for_the_text_in_force(viewer: TestClient, agent: str) -> None:
    shown = page(viewer, f"/ai/agents/{agent}")
    expected = VIOLATIONS[agent]
    assert versions(shown) == expected
    count = sum(int(after) for *_, after in expected)
    assert f", {'once' if count == 1 else f'{count} times'}, after it had requested the robots.txt" in shown.text


def test_number_is_a_lower_bound_if_paths_were_left_out(viewer: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "at least" not in page(viewer, "/ai/agents/CCBot").text
    monkeypatch.setattr(obedience, "CHECKED_MAX", 1)
    shown = page(viewer, "/ai/agents/CCBot")
    assert versions(shown)[0] == ("Sep 21, 2026", "at least 1", "at least 1")
    assert "read at least 1 page that was disallowed , at least once, after it had requested" in shown.text
    monkeypatch.setattr(obedience, "CHECKED_MAX", 3)
    assert "at least" not in page(viewer, "/ai/agents/CCBot").text


@pytest.mark.long
def test_text_of_another_time_says_nothing_about_the_period(viewer: TestClient) -> None:
    assert versions(page(viewer, "/ai/agents/GPTBot", 11, 15)) == [("Sep 13, 2026", "2", "2")]
    assert versions(page(viewer, "/ai/agents/GPTBot", 14, 15)) == [("Sep 13, 2026", "0", "1")]
    text = page(viewer, "/ai/agents/GPTBot", 1, 9).text
    assert "Your robots.txt disallows every page for GPTBot. " in text
    assert "after it had requested" not in text
    assert versions(page(viewer, "/ai/agents/GPTBot", 11, 12)) == [("never", "2", "0")]


def test_nothing_is_known_of_a_text_before_the_log(viewer: TestClient) -> None:
    shown = versions(page(viewer, "/ai/agents/GPTBot", "2026-08-20", 5))
    assert shown == [("Sep 2, 2026", "0", "0"), ("not known", DASH, DASH)]


def test_text_that_repeats_the_one_before_it_is_no_change(site: Dashboard, viewer: TestClient) -> None:
    other, again = (int(datetime(2026, 9, day, tzinfo=UTC).timestamp()) for day in (24, 25))
    texts.save(site.engine, PROJECT, "User-agent: other", other)
    texts.save(site.engine, PROJECT, TEXTS[20, 12], again)
    texts.remove(site.engine, PROJECT, other)
    shown = page(viewer, "/ai/agents/CCBot")
    texts.remove(site.engine, PROJECT, again)
    assert versions(shown) == VIOLATIONS["CCBot"]
    assert "robots.txt of Sep 25" not in shown.text


def test_agents_have_what_they_made_of_the_text_in_force(viewer: TestClient) -> None:
    text = page(viewer, "/ai").text
    for agent, state in STATES.items():
        assert f"{agent} {state}" in text


@pytest.mark.long
def test_chart_has_a_mark_for_each_text_of_the_period(viewer: TestClient) -> None:
    for path in ("", "/ai", "/ai/agents/GPTBot"):
        text = page(viewer, path, 5, 30).text
        assert "robots.txt of Sep 10, 2026" in text
        assert "robots.txt of Sep 20, 2026" in text
        assert "robots.txt of Sep 1, 2026" not in text
