"""The views of the sample projects: recent days, one source for each view, and the posts that no log has."""

import re
from collections import Counter
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from api.cli.demo import sample_views
from api.cli.demo.sample_views import BEACONS_FROM, LAST_DAY
from api.dashboard.web.view import STATES
from ingest.errors import InvalidLine
from ingest.formats import clf
from ingest.formats.page_filter import ERRORS, page_view
from ingest.hits.evidence import NO_EVIDENCE
from ingest.hits.hit import Hit, microseconds
from ingest.hits.row import AGENT, TRAFFIC, row
from tests.api.cli.console import EXPECTED
from warehouse.schema import HOT, Row

DAY = re.compile(rb"\[(\d\d/\w{3}/\d{4}):")
SOURCE, TIME, PATH, VERIFICATION, VERIFIED_BY, COUNTRY, LANGUAGE = (
    HOT.names.index(name) for name in ("source", "ts", "path", "verification", "verified_by", "country", "language")
)
UNMOVED = sample_views.days_moved(date(2026, 10, 1))


@pytest.mark.parametrize(
    ("today", "first", "last"),
    [(date(2026, 11, 22), b"23/Oct/2026", b"21/Nov/2026"), (date(2028, 3, 1), b"31/Jan/2028", b"29/Feb/2028")],
)
def test_last_whole_day_is_yesterday(tmp_path: Path, today: date, first: bytes, last: bytes) -> None:
    beacons = sample_views.write_log(tmp_path / "log", "demo", sample_views.days_moved(today), 0)
    lines = DAY.findall((tmp_path / "log").read_bytes())
    assert (lines[0], last in lines) == (first, True)
    last_beacon = max(int(beacon[TIME] or 0) for beacon in beacons)
    assert datetime.fromtimestamp(last_beacon / 1_000_000, UTC).strftime("%d/%b/%Y").encode() == last


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Row], list[Row]]:
    """Return the beacons and the page views of the log of a demo that starts after the last day of the sample."""
    log = tmp_path_factory.mktemp("sample") / "log"
    beacons = sample_views.write_log(log, "demo", UNMOVED, 0)
    return beacons, [view for line in log.read_bytes().split(b"\n") if (view := _row(line))]


def test_log_and_beacons_have_each_view_of_the_sample_log_once(sample: tuple[list[Row], list[Row]]) -> None:
    views = [view for part in sample for view in part]
    assert len(views) == EXPECTED["page_views"]
    counts = Counter((view[PATH], view[TRAFFIC]) for view in views if view[TRAFFIC] != "bot")
    expected = {(each["path"], name): each[name] for each in EXPECTED["views"] for name in ("human", "ai")}
    assert counts == {key: count for key, count in expected.items() if count}


def test_people_are_in_the_log_before_the_beacons_and_in_beacons_after(sample: tuple[list[Row], list[Row]]) -> None:
    beacons, logged = sample
    begin = microseconds(BEACONS_FROM)
    assert {(view[TRAFFIC], view[SOURCE]) for view in beacons} == {("human", "beacon")}
    assert min(int(view[TIME] or 0) for view in beacons) >= begin
    (country, views), *others = Counter(view[COUNTRY] for view in beacons).most_common()
    assert (country, views < len(beacons) / 2, len(others)) == ("DE", True, 7)
    assert {view[LANGUAGE] for view in beacons} >= {"de", "de-CH", "en-US", "pt-BR"}
    assert max(int(view[TIME] or 0) for view in logged if view[TRAFFIC] == "human") < begin


def test_posts_move_with_the_log_and_have_the_readers_that_they_name() -> None:
    posted = list(sample_views.posted(UNMOVED, microseconds(datetime(2026, 10, 1, tzinfo=UTC))))
    by_source = Counter((view[0], view[SOURCE], view[TRAFFIC]) for view in posted)
    assert {key for key in by_source if key[0] == "demo"} == {
        ("demo", "beacon", "human"),
        ("demo", "server", "ai"),
        ("demo", "server", "bot"),
    }
    assert by_source["new-blog", "beacon", "human"] == 3
    assert len({view[AGENT] for view in posted if view[TRAFFIC] == "ai"}) > 10
    assert datetime.fromtimestamp(max(int(view[TIME] or 0) for view in posted) / 1_000_000, UTC).date() == LAST_DAY


@pytest.mark.parametrize("today", [date(2026, 10, 1), date(2028, 3, 1)])
def test_agents_are_verified_at_the_times_of_the_sample(today: date) -> None:
    """Expect the same verdicts long after the address lists of the release are fresh."""
    posted = [
        view
        for view in sample_views.posted(sample_views.days_moved(today), microseconds(datetime(2030, 1, 1, tzinfo=UTC)))
        if view[0] == "demo" and view[TRAFFIC] != "human"
    ]
    states = Counter((view[AGENT], view[VERIFICATION]) for view in posted)
    assert {state for _, state in states} == {*STATES}
    of_signer = {state: count for (agent, state), count in states.items() if agent == "ChatGPT Agent"}
    assert {*of_signer} == {"signed_known_key", "invalid_signature"}
    evidence = {view[VERIFIED_BY] for view in posted if view[AGENT] == "ChatGPT Agent"}
    assert evidence == {"key:chatgpt.com", "signature:chatgpt.com"}
    assert {agent for agent, state in states if state == "spoofed"} == {"GPTBot", "PerplexityBot", "ClaudeBot"}
    assert states["GPTBot", "verified"] > states["GPTBot", "spoofed"] > 10
    assert {view[TRAFFIC] for view in posted if view[VERIFICATION] == "spoofed"} == {"bot"}


def _row(line: bytes) -> Row | None:
    """Return the row of a line that is a page view. The addresses of the sample are those of documentation."""
    try:
        request = clf.parse(line)
    except InvalidLine:
        return None
    view = None if request is None else page_view(request)
    if not isinstance(view, Hit) or view.path[:1] != "/" or view.status in ERRORS:
        return None
    return row("demo", view._replace(evidence=NO_EVIDENCE), "log", 0)
