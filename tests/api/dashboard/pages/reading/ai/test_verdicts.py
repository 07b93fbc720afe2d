"""Verified, claimed, unchecked and spoofed requests on the pages of AI readers, with the evidence."""

import asyncio
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import msgspec
import pytest
from starlette.testclient import TestClient

from ingest.hits.hit import Hit, microseconds
from ingest.hits.row import row
from ingest.hotlog.deduplication import Post
from ingest.verification import address_lists
from tests.api.dashboard.html import Html
from tests.api.dashboard.pages.reading.ai.ai_traffic import FIREFOX, UNKNOWN, open_page
from tests.api.dashboard.site import Dashboard, opened
from tests.processes.running import COMMAND, PROJECT
from tests.warehouse.site import NOON
from warehouse.control import projects
from warehouse.schema import HOT

GENUINE, OTHER = "20.171.206.5", "192.31.196.5"
"""An address in the list of GPTBot, and one of AS112, which is in no list."""
PERIOD = {"from": "2026-09-10", "to": "2026-09-16"}
API = "dateFrom=2026-09-10&dateTo=2026-09-17"
LIST = "Address listopenai-gptbotof Sep 2, 2026"
AGENT = "/ai/agents/GPTBot"
NAMES = {"verified": "Verified", "claimed": "Claimed", "not_checked": "Not checked", "spoofed": "Spoofed"}


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """Yield a dashboard with requests of each state, at a time at which the lists of the release are fresh."""
    with opened(tmp_path_factory.mktemp("verdicts") / "data") as dashboard:
        at = NOON.isoformat()
        readers = [
            *[("GPTBot/1.3", GENUINE, "/a")] * 5,
            *[("GPTBot/1.3", OTHER, "/b")] * 3,
            *[("ClaudeBot/1.0", None, "/a")] * 2,
            ("Mozilla/5.0 (compatible; Bytespider)", GENUINE, "/a"),
            ("Googlebot/2.1", OTHER, "/b"),
            (FIREFOX, OTHER, "/a"),
        ]
        dashboard.post_hits(
            *(
                {"path": path, "userAgent": name, "timestamp": at, **({"address": address} if address else {})}
                for name, address, path in readers
            )
        )
        _post_unverified(dashboard)
        yield dashboard


def _copy(id: str, seen: date) -> bytes:
    """Return the file of the owner's copy of a list of the release."""
    return address_lists.encode(msgspec.structs.replace(address_lists.shipped()[id], seen=seen))


@pytest.mark.long
@pytest.mark.parametrize("old", [1, 0])
def test_page_names_the_command_that_refreshes_old_lists(tmp_path: Path, old: int) -> None:
    data, today = tmp_path / "data", datetime.now(UTC).date()
    (data / "ranges").mkdir(parents=True)
    decisive = [each.id for each in address_lists.shipped().values() if each.complete and each.is_json]
    for id in decisive[old:]:
        (data / "ranges" / f"{id}.json").write_bytes(_copy(id, today))
    for id in decisive[:old]:
        own = msgspec.structs.replace(address_lists.shipped()[id], id="own", seen=date(2026, 1, 1), created=None)
        (data / "ranges" / "own.json").write_bytes(address_lists.encode(own))
        (data / "ranges" / f"{id}.json").write_bytes(_copy(id, today))
    with opened(data) as dashboard:
        dashboard.post_hits({"path": "/", "userAgent": "GPTBot/1.3"})
        page = Html(dashboard.visitor("viewer").get(f"/projects/{PROJECT}/ai").text).text
    text = f"1 of {len(decisive) + 1} address lists is older than 30 days, the newest of Jan 1, 2026: impostors"
    assert (text in page) == bool(old)
    assert (f"{COMMAND} --data {data} ranges refresh" in page) == bool(old)


def _post_unverified(dashboard: Dashboard) -> None:
    """Store a read by GPTBot as a release before the verification did: the columns are null."""
    hit = Hit("/a", microseconds(NOON), "GPTBot/1.3", None, {}, None, None, None)
    values = dict(zip(HOT.names, row(PROJECT, hit, "log", hit.ts_us), strict=True))
    values |= {"verification": None, "verified_by": None}
    hotlog = dashboard.client.app_state["running"].intake.hotlog
    internal_id = projects.find(dashboard.engine, PROJECT).internal_id

    async def store() -> None:
        await hotlog.post(Post(PROJECT, [tuple(values.values())], [], internal_id=internal_id))

    asyncio.run_coroutine_threadsafe(store(), hotlog.loop).result()


@pytest.fixture(scope="module")
def viewer(checked: Dashboard) -> TestClient:
    return checked.visitor("viewer")


def states_of(page: Html) -> dict[str, int]:
    """Return the requests by the name of the state, in the order of the page."""
    words = [text.strip() for text in page.texts if text.strip()]
    begin = next(place for place, text in enumerate(words) if text in NAMES.values() and words[place + 1].isdigit())
    counts: dict[str, int] = {}
    for name, count in zip(words[begin:], words[begin + 1 :], strict=False):
        if name in NAMES.values() and count.isdigit():
            counts[name] = int(count)
    return counts


@pytest.mark.long
def test_states_are_those_of_the_api_with_spoofed_requests_beside_them(checked: Dashboard, viewer: TestClient) -> None:
    rows = checked.get_report(f"breakdown?by=verification&traffic=ai&{API}")["rows"]
    expected = {NAMES[row["value"]]: row["ai"] for row in rows}
    assert expected == {"Verified": 5, "Claimed": 1, "Not checked": 3}
    assert states_of(open_page(viewer, "/ai", **PERIOD)) == {**expected, "Spoofed": 3}


@pytest.mark.long
def test_states_of_an_agent_are_those_of_the_api(checked: Dashboard, viewer: TestClient) -> None:
    for agent in ("GPTBot", "ClaudeBot", "Bytespider"):
        rows = checked.get_report(f"breakdown?by=verification&agent={agent}&{API}")["rows"]
        expected = {NAMES[row["value"]]: row["ai"] + row["bot"] for row in rows}
        assert states_of(open_page(viewer, f"/ai/agents/{agent}", **PERIOD)) == expected


def test_state_without_a_request_is_not_a_zero(viewer: TestClient) -> None:
    page = open_page(viewer, "/ai/agents/ClaudeBot", **PERIOD)
    assert states_of(page) == {"Not checked": 2}
    assert "No request of this period could be checked." in page.text
    assert "No request of the last 7 days of the period has evidence" in page.text


def first_word(text: str) -> str:
    return re.split(r"[^A-Za-z]", text)[0]


def test_table_has_the_share_of_verified_reads_or_what_most_reads_are(viewer: TestClient) -> None:
    page = open_page(viewer, "/ai", **PERIOD)
    at = page.tables["Operators and their agents"][0].index("Verified")
    shown = {first_word(row[0]): row[at] for row in page.rows("Operators and their agents")}
    expected = {"83%": ("OpenAI", "GPTBot"), "not checked": ("Anthropic", "ClaudeBot")}
    expected["claimed"] = ("ByteDance", "Bytespider")
    assert shown == {name: text for text, names in expected.items() for name in names}
    file = viewer.get(f"/projects/{PROJECT}/ai.csv", params=PERIOD).text
    rows = [line.split(",")[1:5] for line in file.splitlines()[1:3]]
    assert rows == [["", "", "6", "5"], ["GPTBot", "training", "6", "5"]]


def test_evidence_names_the_list_of_each_verdict_and_its_source(viewer: TestClient) -> None:
    page = open_page(viewer, AGENT, **PERIOD)
    assert page.rows("Evidence") == [[LIST, "Verified", "5"], [LIST, "Spoofed", "3"]]
    assert "https://openai.com/gptbot.json" in page.links()


def test_page_of_an_agent_names_the_requests_in_its_name(viewer: TestClient) -> None:
    assert "3 requests came from impostors of GPTBot." in open_page(viewer, AGENT, **PERIOD).text
    assert "impostor" not in open_page(viewer, "/ai/agents/ClaudeBot", **PERIOD).text


def test_filter_by_spoofed_shows_what_the_requests_in_a_false_name_read(checked: Dashboard, viewer: TestClient) -> None:
    page = open_page(viewer, AGENT, **PERIOD, verification="spoofed")
    rows = checked.get_report(f"breakdown?by=path&agent=GPTBot&verification=spoofed&{API}")["rows"]
    assert page.rows("Pages that requests in the name of GPTBot read") == [
        [row["value"], str(row["bot"])] for row in rows
    ]
    assert [row[1] for row in page.rows("Numbers of this chart")] == [UNKNOWN] * 5 + ["3", UNKNOWN]
    assert "rule bot:spoofed:GPTBot" in page.text
    assert "Verification: Spoofed" in page.text


@pytest.mark.long
def test_filter_by_verified_leaves_out_the_other_reads(viewer: TestClient) -> None:
    page = open_page(viewer, AGENT, **PERIOD, verification="verified")
    assert page.rows("Pages that GPTBot read") == [["/a", "5"]]
    assert states_of(page) == {"Verified": 5, "Not checked": 1, "Spoofed": 3}
    table = open_page(viewer, "/ai", **PERIOD, verification="verified").rows("Operators and their agents")
    assert [(first_word(row[0]), row[1]) for row in table] == [("OpenAI", "5"), ("GPTBot", "5")]


@pytest.mark.long
def test_false_names_are_those_of_ai_agents(viewer: TestClient) -> None:
    heading = "Impostors"
    expected = [["GPTBotOpenAI", "3", "33%"]]
    assert open_page(viewer, "/ai", **PERIOD).rows(heading) == expected
    assert open_page(viewer, "/ai", **PERIOD, operator="OpenAI").rows(heading) == expected
    assert open_page(viewer, "/ai", **PERIOD, operator="Anthropic").rows(heading) == []
    spoofed = open_page(viewer, "/ai", **PERIOD, verification="spoofed")
    assert spoofed.rows(heading) == expected
    assert "No reads by AI in this period" not in spoofed.text


@pytest.mark.long
def test_filter_by_an_agent_shows_the_spoofed_requests_as_other_bots(viewer: TestClient) -> None:
    page = open_page(viewer, "", **PERIOD, agent="GPTBot")
    assert "AI 6" in page.text
    assert "Other bots 3" in page.text
