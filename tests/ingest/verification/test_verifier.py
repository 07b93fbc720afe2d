"""The verifier joins the lists of the release with newer ones of the owner."""

from datetime import UTC, date, datetime
from pathlib import Path

import msgspec
import pytest

from ingest.errors import InvalidAddressList
from ingest.verification.address_lists import encode, sha256_of, shipped
from ingest.verification.verdict import CLAIMED, NOT_CHECKED, Verdict
from ingest.verification.verifier import Verifier

VERIFIER = Verifier()
SEPTEMBER_US = int(datetime(2026, 9, 3, tzinfo=UTC).timestamp()) * 1_000_000
OUTSIDE = "203.0.113.7"
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
    prefixes = ("203.0.113.0/24",)
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


@pytest.mark.parametrize(("agent", "is_verifiable"), [("GPTBot", True), ("Bytespider", False)])
def test_agent_with_a_list_is_verifiable(agent: str, is_verifiable: bool) -> None:
    assert VERIFIER.is_verifiable(agent) is is_verifiable


def test_requests_of_one_agent_are_verified_at_once() -> None:
    verdicts = VERIFIER.by_addresses("GPTBot", "GPTBot/1.3", ["20.171.206.7", OUTSIDE], [SEPTEMBER_US] * 2)
    assert [verdict.state for verdict in verdicts] == ["verified", "spoofed"]
