"""The address of a request decides its state: each state that rests on an address, from a list with known prefixes."""

from collections.abc import Sequence
from datetime import UTC, date, datetime

import pytest

from ingest.errors import InvalidAddressList
from ingest.verification.address_check import AddressCheck
from ingest.verification.address_lists import AddressList, sha256_of
from ingest.verification.verdict import CLAIMED, NOT_CHECKED, Verdict

INSIDE, OUTSIDE = "20.42.10.180", "203.0.113.7"
NOW_US = int(datetime(2026, 9, 10, tzinfo=UTC).timestamp()) * 1_000_000
LATER_US = int(datetime(2027, 9, 10, tzinfo=UTC).timestamp()) * 1_000_000
VERIFIED = Verdict("verified", "list:example-bots 2026-09-02")
SPOOFED = Verdict("spoofed", "list:example-bots 2026-09-02")


def example(
    id: str = "example-bots",
    tokens: Sequence[str] = ("ExampleBot", "Example-User"),
    prefixes: Sequence[str] = ("20.42.10.176/28", "2a00:1450:4864::/48"),
    *,
    complete: bool = True,
    seen: date = date(2026, 9, 2),
) -> AddressList:
    return AddressList(
        id=id,
        operator="Example",
        tokens=tuple(tokens),
        complete=complete,
        never_spoofed=("Example-User",),
        exempt=("adexample",),
        source="https://example.com/bots.json",
        created=None,
        seen=seen,
        copies=1,
        sha256=sha256_of(prefixes),
        prefixes=tuple(prefixes),
    )


CHECK = AddressCheck([example()])


@pytest.mark.parametrize(
    ("agent", "address", "ts_us", "verdict"),
    [
        ("ExampleBot", INSIDE, NOW_US, VERIFIED),
        ("ExampleBot", INSIDE, LATER_US, VERIFIED),
        ("ExampleBot", INSIDE, 0, VERIFIED),
        ("ExampleBot", f"::ffff:{INSIDE}", NOW_US, VERIFIED),
        ("ExampleBot", "2a00:1450:4864::1", NOW_US, VERIFIED),
        ("ExampleBot", OUTSIDE, NOW_US, SPOOFED),
        ("ExampleBot", f"::ffff:{OUTSIDE}", NOW_US, SPOOFED),
        ("ExampleBot", "2001:db8::1", NOW_US, SPOOFED),
        ("ExampleBot", OUTSIDE, LATER_US, CLAIMED),
        ("ExampleBot", OUTSIDE, 0, CLAIMED),
        ("ExampleBot", "203.0.113.0", NOW_US, NOT_CHECKED),
        ("ExampleBot", "2001:db8::", NOW_US, NOT_CHECKED),
        ("ExampleBot", None, NOW_US, NOT_CHECKED),
        ("ExampleBot", "", NOW_US, NOT_CHECKED),
        ("ExampleBot", "unknown", NOW_US, NOT_CHECKED),
        ("ExampleBot", "10.0.0.5", NOW_US, NOT_CHECKED),
        ("ExampleBot", "fe80::1%eth0", NOW_US, NOT_CHECKED),
        ("Example-User", INSIDE, NOW_US, VERIFIED),
        ("Example-User", OUTSIDE, NOW_US, CLAIMED),
        ("OtherBot", INSIDE, NOW_US, CLAIMED),
        ("OtherBot", None, NOW_US, CLAIMED),
    ],
)
def test_address_decides_the_state(agent: str, address: str | None, ts_us: int, verdict: Verdict) -> None:
    assert CHECK.check(agent, f"{agent}/1.0", address, ts_us) == verdict


@pytest.mark.parametrize(("address", "verdict"), [(INSIDE, VERIFIED), (OUTSIDE, CLAIMED)])
def test_absence_proves_nothing_for_an_exempt_user_agent(address: str, verdict: Verdict) -> None:
    assert CHECK.check("ExampleBot", "AdExample/2.0 (+http://example.com/ExampleBot)", address, NOW_US) == verdict


def test_absence_from_an_incomplete_list_proves_nothing() -> None:
    assert AddressCheck([example(complete=False)]).check("ExampleBot", "", OUTSIDE, NOW_US) == CLAIMED


OTHER_LIST = example("example-special", ("ExampleBot",), ("9.9.9.0/24",), seen=date(2026, 9, 20))


def test_either_list_of_an_agent_verifies_it_and_only_absence_from_both_is_evidence() -> None:
    check = AddressCheck([example(), OTHER_LIST])
    assert check.check("ExampleBot", "", INSIDE, NOW_US) == VERIFIED
    assert check.check("ExampleBot", "", "9.9.9.9", NOW_US) == Verdict("verified", "list:example-special 2026-09-20")
    assert check.check("ExampleBot", "", OUTSIDE, NOW_US) == Verdict(
        "spoofed", "list:example-bots 2026-09-02, list:example-special 2026-09-20"
    )


def test_absence_proves_nothing_if_one_of_the_lists_of_the_agent_is_incomplete() -> None:
    partial = example("example-special", ("ExampleBot",), ("9.9.9.0/24",), complete=False)
    for lists in ([example(), partial], [partial, example()]):
        assert AddressCheck(lists).check("ExampleBot", "", OUTSIDE, NOW_US) == CLAIMED


def test_absence_is_evidence_only_while_each_list_of_the_agent_is_fresh() -> None:
    october_15_us = int(datetime(2026, 10, 15, tzinfo=UTC).timestamp()) * 1_000_000  # after 2026-09-02 + 30 days
    assert AddressCheck([OTHER_LIST]).check("ExampleBot", "", OUTSIDE, october_15_us).state == "spoofed"
    assert AddressCheck([example(), OTHER_LIST]).check("ExampleBot", "", OUTSIDE, october_15_us) == CLAIMED


def test_absence_is_evidence_only_within_the_fresh_times() -> None:
    fresh_us = CHECK.fresh_us("ExampleBot")
    assert fresh_us is not None
    at_edges = [fresh_us.start - 1, fresh_us.start, fresh_us.stop - 1, fresh_us.stop]
    verdicts = [CHECK.check("ExampleBot", "", OUTSIDE, at_us) for at_us in at_edges]
    assert verdicts == [CLAIMED, SPOOFED, SPOOFED, CLAIMED]
    assert CHECK.fresh_us("OtherBot") is None


def test_list_with_a_text_that_is_no_prefix_is_named() -> None:
    with pytest.raises(InvalidAddressList, match="an address list of ExampleBot has a text that is not a prefix"):
        AddressCheck([example(prefixes=("somewhere",))]).check("ExampleBot", "", INSIDE, NOW_US)
