"""A hit becomes a row of the lake, with the columns of its user agent and referrer."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.classification.classifier import RULESET, classify
from ingest.hits.evidence import Evidence
from ingest.hits.hit import Hit
from ingest.hits.row import AGENT, TRAFFIC, Site, classify_user_agents, row, rows
from ingest.verification.verifier import Verifier
from warehouse.schema import CLASSIFICATION, HOT

TS = datetime(2026, 9, 15, 12, 34, 56, 789_012, tzinfo=UTC)
TS_US = 1_789_475_696_789_012
RECEIVED = datetime(2026, 9, 15, 12, 35, tzinfo=UTC)
RECEIVED_US = 1_789_475_700_000_000
GPTBOT = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; GPTBot/1.3; +https://openai.com/gptbot"
IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/26.4 Mobile/15E148 Safari/604.1"
)


def columns(user_agent: str = "", referrer: str | None = None, **fields: Any) -> dict[str, Any]:
    """Return the row of a hit as the lake returns it: by name, in the types of the schema."""
    others = {"parameters": {}, "format": None, "status": None, "event_id": None, **fields}
    values = row("site", Hit("/a", TS_US, user_agent, referrer, **others), "server", RECEIVED_US)
    arrays = [pa.array([value], field.type) for value, field in zip(values, HOT, strict=True)]
    read: dict[str, Any] = pa.RecordBatch.from_arrays(arrays, schema=HOT).to_pylist()[0]
    return read


def test_row_of_an_ai_agent_has_the_agent_and_the_rule() -> None:
    read = columns(
        GPTBOT,
        "https://Example.ORG:8443/page?q=1",
        parameters={"utm_source": "news", "utm_medium": "mail", "utm_campaign": "spring", "utm_term": "shoes"},
        format="markdown",
        status=304,
        event_id="event-1",
    )
    of_device = {name: read.pop(name) for name in ("browser", "os", "device")}
    assert of_device["device"] == "bot"
    assert read == {
        "project_id": "site",
        "ts": TS,
        "path": "/a",
        "traffic": "ai",
        "agent": "GPTBot",
        "operator": "OpenAI",
        "purpose": "training",
        "rule": "ai:GPTBot",
        "ruleset": RULESET,
        "user_agent": GPTBOT,
        "referrer": "https://Example.ORG:8443/page?q=1",
        "referrer_host": "example.org",
        "utm_source": "news",
        "format": "markdown",
        "status": 304,
        "source": "server",
        "event_id": "event-1",
        "received_at": RECEIVED,
        "verification": "not_checked",
        "verified_by": None,
        "hints": None,
        "utm_medium": "mail",
        "visitor": None,
        "utm_campaign": "spring",
        "utm_term": "shoes",
        "utm_content": None,
        "click": None,
        "country": None,
        "language": None,
        "bytes": None,
        "duration_ms": None,
        "cache": None,
        "engaged_ms": None,
        "channel": None,
    }


@pytest.mark.parametrize(
    ("referrer", "parameters", "expected"),
    [
        (None, {}, "Direct"),
        ("https://www.google.com/", {}, "Search"),
        ("https://www.shop.example/a", {}, None),
        ("https://www.shop.example/a", {"utm_source": "chatgpt.com"}, "AI assistants"),
        ("https://www.google.com/", {"click": "gclid"}, "Paid"),
    ],
)
def test_person_has_a_channel_country_and_language(
    referrer: str | None, parameters: dict[str, str], expected: str | None
) -> None:
    def read(user_agent: str) -> list[Any]:
        evidence = Evidence(country="DE", language="de")
        hit = Hit("/a", TS_US, user_agent, referrer, parameters, None, None, None, evidence)
        stored = dict(
            zip(HOT.names, row("site", hit, "server", RECEIVED_US, site=Site(frozenset({"shop.example"}))), strict=True)
        )
        return [stored[name] for name in ("country", "language", "channel")]

    assert read(IPHONE) == ["DE", "de", expected]
    assert read(GPTBOT) == [None, None, None]


def test_row_of_a_person_has_the_browser_and_the_device_and_an_empty_user_agent_is_that_of_a_bot() -> None:
    read, bot = columns(IPHONE), columns("")
    assert [read[name] for name in ("traffic", "agent", "operator", "purpose")] == ["human", None, None, None]
    assert [read[name] for name in ("browser", "os", "device")] == ["Mobile Safari", "iOS", "mobile"]
    assert (bot["traffic"], bot["rule"], bot["user_agent"]) == ("bot", "bot:empty-user-agent", "")


def test_rows_of_a_post_are_those_of_its_hits_in_their_order() -> None:
    hits = [
        Hit(f"/{number}", TS_US + number, agent, None, {}, None, None, None)
        for number, agent in enumerate([IPHONE, GPTBOT, IPHONE, "", GPTBOT])
    ]
    assert rows("site", hits, RECEIVED_US, Verifier()) == [row("site", hit, "server", RECEIVED_US) for hit in hits]


def test_hints_are_those_of_a_server_post_and_do_not_change_the_classification() -> None:
    read = columns(IPHONE, evidence=Evidence(headers={"accept-language": "en"}))
    assert (read["traffic"], read["hints"]) == ("human", "no-sec-fetch")
    hit = Hit("/a", TS_US, IPHONE, None, {}, None, None, None, Evidence(headers={"signature-input": "a"}))
    assert row("site", hit, "beacon", RECEIVED_US)[HOT.names.index("hints")] is None


@pytest.mark.parametrize("source", ["server", "log", "beacon"])
def test_request_for_markdown_is_ai_and_a_beacon_is_not(source: str) -> None:
    def read(user_agent: str, accept: str) -> dict[str, Any]:
        hit = Hit("/a", TS_US, user_agent, None, {}, None, None, None, Evidence(accept=accept))
        return dict(zip(HOT.names, row("site", hit, source, RECEIVED_US), strict=True))

    person, markdown = read(IPHONE, "text/html"), read(IPHONE, "text/markdown, */*")
    as_ai = {"traffic": "ai", "rule": "ai:accept-markdown", "browser": None, "channel": None}
    assert person["channel"] == "Direct"
    assert markdown == (person if source == "beacon" else {**person, **as_ai})
    assert read(GPTBOT, "text/markdown")["rule"] == "ai:GPTBot"


def test_format_is_that_of_the_path_unless_the_sender_sent_one() -> None:
    def read(source: str, format: str | None) -> object:
        values = row("site", Hit("/a.md", TS_US, IPHONE, None, {}, format, None, None), source, RECEIVED_US)
        return values[HOT.names.index("format")]

    assert [read(source, None) for source in ("server", "log", "beacon")] == ["text/markdown", "text/markdown", None]
    assert read("server", "text/html") == "text/html"


def test_long_user_agent_is_classified_and_stored_whole() -> None:
    user_agent = GPTBOT + ";" + "a" * (16_384 - len(GPTBOT) - 1)
    values = row("site", Hit("/a", TS_US, user_agent, None, {}, None, None, None), "log", RECEIVED_US)
    stored = [values[place] for place in (TRAFFIC, AGENT, HOT.names.index("user_agent"))]
    assert stored == ["ai", "GPTBot", user_agent]


@pytest.mark.parametrize(
    ("referrer", "host"),
    [
        (None, None), ("https://example.org", "example.org"), ("https://EXAMPLE.org/", "example.org"),
        ("http://user:secret@example.org:8080/a?b#c", "example.org"), ("https://[2001:db8::1]:8443/", "2001:db8::1"),
        ("https://192.0.2.1/", "192.0.2.1"), ("android-app://com.google.android.gm/", "com.google.android.gm"),
        ("//example.org/a", "example.org"), ("https://b\xfccher.example/", "b\xfccher.example"),
        ("example.org/a", None), ("/a", None), ("about:blank", None), ("https://", None), ("https://[broken/", None),
        ("https://a\u2100b/", None), ("?", None),
    ],
)  # fmt: skip
def test_row_has_the_host_of_the_referrer(referrer: str | None, host: str | None) -> None:
    read = columns(referrer=referrer)
    assert (read["referrer"], read["referrer_host"]) == (referrer, host)


storable = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=50)


@pytest.mark.long
@settings(max_examples=100)
@given(storable, storable.filter(bool) | st.none())
def test_equal_hits_have_equal_rows(user_agent: str, referrer: str | None) -> None:
    read = columns(user_agent, referrer)
    assert read == columns(user_agent, referrer)
    assert (read["user_agent"], read["referrer"]) == (user_agent, referrer)
    answer = classify(user_agent)
    assert (read["traffic"], read["agent"], read["rule"]) == (answer.traffic, answer.agent, answer.rule)


def test_stored_user_agents_get_the_columns_that_hits_with_them_get() -> None:
    agents = ["", GPTBOT, IPHONE, "curl/8 'quoted' \N{PILE OF POO}", "GPTBot/" + 10_000 * "x"]
    table = classify_user_agents(agents)
    assert table.to_pylist() == [{name: columns(agent)[name] for name in CLASSIFICATION.names} for agent in agents]
    assert table.schema == classify_user_agents([]).schema == CLASSIFICATION
