"""The verdicts on the page views of a log are those of each page view by itself."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from ingest.classification.user_agent_cache import UserAgentCache
from ingest.hits.evidence import Evidence
from ingest.hits.hit import Hit
from ingest.hits.row import row
from ingest.imports.rows import hits_table, lake_rows
from ingest.verification.address_lists import shipped
from ingest.verification.reverse_dns import ReverseDns
from ingest.verification.verifier import Verifier
from tests.ingest.verification.test_reverse_dns import Resolver
from warehouse.schema import HOT

LIST = shipped()["openai-gptbot"]
INSIDE, OUTSIDE = LIST.prefixes[0].partition("/")[0], "9.9.9.9"
GPTBOT, CLAUDEBOT, BYTESPIDER, PERSON = (
    "Mozilla/5.0 (compatible; GPTBot/1.3; +https://openai.com/gptbot)",
    "Mozilla/5.0 (compatible; ClaudeBot/1.0; +claudebot@anthropic.com)",
    "Mozilla/5.0 (compatible; Bytespider; spider-feedback@bytedance.com)",
    "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
)
FRESH_US = (LIST.fresh_us.start + LIST.fresh_us.stop) // 2
NAMES = ("traffic", "agent", "operator", "purpose", "rule", "verification", "verified_by")


def hit(user_agent: str, address: str | None, ts_us: int = FRESH_US) -> Hit:
    return Hit("/a", ts_us, user_agent, None, {}, None, None, None, Evidence(address))


def columns(user_agent: str, address: str | None, ts_us: int = FRESH_US) -> tuple[object, ...]:
    values = dict(zip(HOT.names, row("site", hit(user_agent, address, ts_us), "server", ts_us), strict=True))
    return tuple(values[name] for name in NAMES)


def test_hit_from_an_address_of_the_list_is_verified_by_the_list() -> None:
    assert columns(GPTBOT, INSIDE) == ("ai", "GPTBot", "OpenAI", "training", "ai:GPTBot", "verified", LIST.label)


def test_hit_from_outside_of_a_complete_and_fresh_list_is_a_spoofed_bot() -> None:
    assert columns(GPTBOT, OUTSIDE) == ("bot", "GPTBot", None, None, "bot:spoofed:GPTBot", "spoofed", LIST.label)


def test_claim_is_not_checked_without_an_address_and_undecided_outside_of_the_times_of_the_list() -> None:
    assert columns(GPTBOT, None)[-2:] == ("not_checked", None)
    assert columns(GPTBOT, OUTSIDE, LIST.fresh_us.stop)[:2] == ("ai", "GPTBot")
    assert columns(GPTBOT, OUTSIDE, LIST.fresh_us.stop)[-2:] == ("claimed", None)
    assert columns(BYTESPIDER, OUTSIDE)[-2:] == ("claimed", None)


@pytest.mark.parametrize("address", ["10.0.0.1", "127.0.0.1", "192.0.2.7", "2001:db8::1", "fd00::1", "not an address"])
def test_address_that_no_client_on_the_internet_has_is_no_evidence(address: str) -> None:
    assert columns(GPTBOT, address)[:2] == ("ai", "GPTBot")
    assert columns(GPTBOT, address)[-2:] == ("not_checked", None)


def test_person_has_no_verdict() -> None:
    assert (columns(PERSON, INSIDE)[0], columns(PERSON, INSIDE)[-2:]) == ("human", (None, None))


@pytest.mark.long
def test_page_views_of_a_log_have_the_verdicts_of_each_by_itself() -> None:
    chance = random.Random(15)
    edges = [LIST.fresh_us.start, LIST.fresh_us.stop]
    hits = [
        hit(
            chance.choice([GPTBOT, CLAUDEBOT, BYTESPIDER, PERSON, ""]),
            chance.choice([INSIDE, OUTSIDE, "2620:fe::9", "192.0.2.7", "10.0.0.1", None]),
            chance.choice(edges) + chance.choice([-1, 0, 1, 10**9, 10**13]) * chance.randrange(3),
        )
        for _ in range(2_000)
    ]
    rows, counts, *_ = lake_rows("site", hits_table(hits), 0, UserAgentCache(), Verifier())
    expected = [columns(each.user_agent, each.evidence.address, each.ts_us) for each in hits]
    assert [*zip(*(rows[name].to_pylist() for name in NAMES), strict=True)] == expected
    assert {state for *_, state, _ in expected} == {"verified", "spoofed", "claimed", "not_checked", None}
    assert counts["bot", "GPTBot"] == sum(each[4] == "bot:spoofed:GPTBot" for each in expected)


def test_page_views_of_a_log_without_addresses_are_not_checked() -> None:
    day_us = timedelta(days=1) // timedelta(microseconds=1)
    now_us = int(datetime(2026, 9, 15, tzinfo=UTC).timestamp()) * 1_000_000
    hits = [hit(user_agent, None, now_us + number * day_us) for number, user_agent in enumerate([GPTBOT, PERSON, ""])]
    rows, *_ = lake_rows("site", hits_table(hits), 0, UserAgentCache(), Verifier())
    assert rows["verification"].to_pylist() == ["not_checked", None, None]


def test_claims_of_a_log_are_confirmed_by_reverse_dns_where_it_is_on() -> None:
    resolver = Resolver("crawl-1.googlebot.com", OUTSIDE)
    dns = ReverseDns(0, resolver.name_of, resolver.addresses_of)
    googlebot = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
    crawlers = shipped()["google-common-crawlers"]
    at_us = crawlers.fresh_us.stop - 1
    in_list = crawlers.prefixes[0].partition("/")[0]
    hits = [hit(googlebot, address, at_us) for address in (OUTSIDE, "9.9.9.10", in_list, OUTSIDE)]
    hits += [hit(GPTBOT, OUTSIDE), hit(PERSON, "9.9.9.11")]
    rows, *_ = lake_rows("site", hits_table(hits), 0, UserAgentCache(), Verifier(reverse_dns=dns))
    expected = ["verified", "spoofed", "verified", "verified", "spoofed", None]
    assert rows["verification"].to_pylist() == expected
    assert rows["verified_by"][0].as_py() == "dns:googlebot.com"
    assert sorted(resolver.asked) == ["9.9.9.10", OUTSIDE]  # not an address of a list, or of an agent without names
