"""The verifier joins the evidence of address lists, reverse DNS and signatures in one order of precedence."""

from datetime import UTC, date, datetime
from pathlib import Path
from threading import Event

import msgspec
import numpy as np
import pytest

from ingest.errors import InvalidAddressList
from ingest.hits.evidence import NO_EVIDENCE, Evidence
from ingest.verification.address_check import LoggedRequests
from ingest.verification.address_lists import encode, sha256_of, shipped
from ingest.verification.directories import KeyDirectories
from ingest.verification.public_keys import parse_directory
from ingest.verification.reverse_dns import ReverseDns
from ingest.verification.signature_agents import signed_agent
from ingest.verification.signatures import SignatureCheck
from ingest.verification.verdict import CLAIMED, NOT_CHECKED, Verdict
from ingest.verification.verifier import Verifier
from tests.ingest.verification.operators.signing import CREATED_S, HOST, Signer
from tests.ingest.verification.test_reverse_dns import Resolver
from tests.ingest.verification.test_signatures import CHATGPT_KEY

VERIFIER = Verifier()
SEPTEMBER_US = int(datetime(2026, 9, 3, tzinfo=UTC).timestamp()) * 1_000_000
OUTSIDE = "9.9.9.7"
CLAUDE_CODE = "Claude-User (claude-code/2.1.5; +https://support.anthropic.com/)"


@pytest.mark.parametrize(
    ("agent", "user_agent", "address", "verdict"),
    [
        ("GPTBot", "GPTBot/1.3", "20.171.206.7", Verdict("verified", "list:openai-gptbot 2026-09-02")),
        ("GPTBot", "GPTBot/1.3", OUTSIDE, Verdict("spoofed", "list:openai-gptbot 2026-09-02")),
        ("GPTBot", "GPTBot/1.3", None, NOT_CHECKED),
        ("ClaudeBot", "ClaudeBot/1.0", OUTSIDE, Verdict("spoofed", "list:anthropic-bots 2026-08-20")),
        ("Claude-User", CLAUDE_CODE, OUTSIDE, CLAIMED),
        ("Claude-User", "Claude-User/1.0", "216.73.216.9", Verdict("verified", "list:anthropic-bots 2026-08-20")),
        ("Googlebot", "Googlebot/2.1", "66.249.66.1", Verdict("verified", "list:google-common-crawlers 2026-09-02")),
        ("GoogleOther", "GoogleOther", "66.249.66.1", Verdict("verified", "list:google-common-crawlers 2026-09-02")),
        ("GoogleOther", "GoogleOther", "74.125.150.3", Verdict("verified", "list:google-special-crawlers 2026-09-02")),
        ("bingbot", "adidxbot/2.0; +http://www.bing.com/bingbot.htm", OUTSIDE, CLAIMED),
        ("meta-externalagent", "meta-externalagent/1.1", OUTSIDE, CLAIMED),
    ],
)
def test_lists_of_the_release_decide(agent: str, user_agent: str, address: str | None, verdict: Verdict) -> None:
    assert VERIFIER.by_address(agent, user_agent, address, SEPTEMBER_US) == verdict


def test_newer_list_of_the_owner_takes_precedence(tmp_path: Path) -> None:
    prefixes = ("9.9.9.0/24",)
    newer = msgspec.structs.replace(
        shipped()["openai-gptbot"], seen=date(2026, 11, 20), sha256=sha256_of(prefixes), prefixes=prefixes
    )
    (tmp_path / "openai-gptbot.json").write_bytes(encode(newer))
    verifier = Verifier(tmp_path)
    assert verifier.by_address("GPTBot", "", OUTSIDE, 0) == Verdict("verified", "list:openai-gptbot 2026-11-20")
    assert verifier.by_address("OAI-SearchBot", "", OUTSIDE, SEPTEMBER_US).state == "spoofed"


def test_damaged_list_of_the_owner_is_an_error_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "openai-gptbot.json").write_text("{")
    with pytest.raises(InvalidAddressList, match=r"openai-gptbot\.json is not an address list"):
        Verifier(tmp_path)


SIGNER = Signer()
SIGNED = SIGNER.request()
FORGED = Signer(2).request(key_id=SIGNER.key_id)
OF_ANOTHER_KEY = Signer(2).request()
SIGNED_US = (CREATED_S + 60) * 1_000_000  # 2026-09-21
INSIDE = "136.121.16.9"  # in the list of Google-Agent
FULL = Verifier(directories=KeyDirectories([HOST], lambda _: SIGNER.directory(), wait_s=10))
BY_SIGNATURE = Verdict("verified", f"signature:{HOST}")
BY_LIST = Verdict("verified", "list:google-user-triggered-agents 2026-09-02")
SPOOFED = Verdict("spoofed", "list:google-user-triggered-agents 2026-09-02")
BY_KEY = Verdict("signed_known_key", f"key:{HOST}")
FORGERY = Verdict("invalid_signature", f"signature:{HOST}")


@pytest.mark.parametrize(
    ("agent", "evidence", "address", "verdict"),
    [
        ("Google-Agent", SIGNED, None, BY_SIGNATURE),
        ("Google-Agent", SIGNED, INSIDE, BY_SIGNATURE),
        ("Google-Agent", SIGNED, OUTSIDE, BY_SIGNATURE),
        ("Google-Agent", FORGED, INSIDE, BY_LIST),
        ("Google-Agent", FORGED, OUTSIDE, SPOOFED),
        ("Google-Agent", FORGED, None, FORGERY),
        ("Google-Agent", OF_ANOTHER_KEY, OUTSIDE, SPOOFED),
        ("Google-Agent", OF_ANOTHER_KEY, None, NOT_CHECKED),
        ("Google-Agent", NO_EVIDENCE, INSIDE, BY_LIST),
        ("Google-Agent", NO_EVIDENCE, None, NOT_CHECKED),
        ("GPTBot", SIGNED, None, NOT_CHECKED),  # a valid signature of another agent
        ("GPTBot", SIGNED, OUTSIDE, Verdict("spoofed", "list:openai-gptbot 2026-09-02")),
        ("Bytespider", NO_EVIDENCE, OUTSIDE, CLAIMED),
        ("Bytespider", FORGED, OUTSIDE, FORGERY),
        (None, SIGNED, OUTSIDE, BY_SIGNATURE),
        (None, FORGED, OUTSIDE, FORGERY),
        (None, NO_EVIDENCE, OUTSIDE, CLAIMED),
    ],
)
def test_evidence_is_joined_in_the_order_of_precedence(
    agent: str | None, evidence: Evidence, address: str | None, verdict: Verdict
) -> None:
    assert FULL.verify(agent, "", evidence._replace(address=address), SIGNED_US) == verdict


def test_signature_names_the_agent_of_a_request_with_the_user_agent_of_a_browser() -> None:
    verdict = FULL.verify(None, "Mozilla/5.0 (Macintosh) Chrome/138.0.0.0 Safari/537.36", SIGNED, SIGNED_US)
    assert signed_agent(verdict) == "Google-Agent"


@pytest.mark.parametrize(
    ("verdict", "agent"),
    [
        (Verdict("verified", "signature:chatgpt.com"), "ChatGPT Agent"),
        (Verdict("signed_known_key", "key:chatgpt.com"), "ChatGPT Agent"),
        (Verdict("verified", "signature:signer.example"), None),
        (BY_LIST, None),
        (CLAIMED, None),
    ],
)
def test_agent_of_a_signature(verdict: Verdict, agent: str | None) -> None:
    assert signed_agent(verdict) == agent


def test_invalid_signature_names_no_agent() -> None:
    assert signed_agent(FORGERY) is None


def test_without_the_network_a_signature_is_no_evidence_unless_its_key_is_known() -> None:
    assert VERIFIER.verify("Google-Agent", "", SIGNED, SIGNED_US) == NOT_CHECKED
    forged = SIGNER.request(agent='g="https://chatgpt.com"', key_id=CHATGPT_KEY)
    assert VERIFIER.verify(None, "", forged, SIGNED_US) == Verdict("invalid_signature", "signature:chatgpt.com")


@pytest.mark.parametrize(("address", "verdict"), [(OUTSIDE, BY_KEY), (None, BY_KEY), (INSIDE, BY_LIST)])
def test_known_key_comes_before_an_address_in_no_list_and_after_one_in_a_list(
    address: str | None, verdict: Verdict
) -> None:
    verifier = Verifier()
    keys = parse_directory(SIGNER.directory())
    # The private key of a key of the table is not known.
    vars(verifier)["_signature_check"] = SignatureCheck(known_keys={SIGNER.key_id: (HOST, keys[SIGNER.key_id])})
    assert verifier.verify("Google-Agent", "", SIGNED._replace(address=address), SIGNED_US) == verdict


@pytest.mark.parametrize(
    ("agent", "address", "verdict"),
    [
        ("Googlebot", "9.9.9.9", Verdict("verified", "dns:googlebot.com")),  # an address that the list lacks
        ("Googlebot", "9.9.9.8", Verdict("spoofed", "list:google-common-crawlers 2026-09-02")),
        ("Googlebot", "66.249.66.1", Verdict("verified", "list:google-common-crawlers 2026-09-02")),
        ("Baiduspider", "9.9.9.9", CLAIMED),
        ("Baiduspider", None, NOT_CHECKED),
        ("GPTBot", None, NOT_CHECKED),
    ],
)
def test_reverse_dns_is_evidence_where_it_is_on(agent: str, address: str | None, verdict: Verdict) -> None:
    resolver = Resolver("crawl-1.googlebot.com", "9.9.9.9")
    verifier = Verifier(reverse_dns=ReverseDns(10, resolver.name_of, resolver.addresses_of))
    assert verifier.verify(agent, "", Evidence(address=address), SEPTEMBER_US) == verdict
    verifier.close()


def test_request_is_not_spoofed_before_the_name_of_its_address_is_known() -> None:
    resolver, is_answering = Resolver("crawl-1.example.com", "9.9.9.8"), Event()

    def name_of(address: str) -> str:
        is_answering.wait(60)
        return resolver.name_of(address)

    verifier = Verifier(reverse_dns=ReverseDns(0, name_of, resolver.addresses_of))
    assert verifier.verify("Googlebot", "", Evidence(address="9.9.9.8"), SEPTEMBER_US) == CLAIMED
    is_answering.set()
    first, at_us = np.zeros(1, np.int64), np.array([SEPTEMBER_US])
    verdicts, [place] = verifier.by_addresses(LoggedRequests(["Googlebot"], [""], ["9.9.9.8"], first, first, at_us))
    assert verdicts[place].state == "spoofed"
    assert verifier.verify("Googlebot", "", Evidence(address="9.9.9.8"), SEPTEMBER_US).state == "spoofed"
    verifier.close()
