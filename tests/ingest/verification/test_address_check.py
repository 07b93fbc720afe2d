"""The address of a request decides its state: each state that rests on an address, from a list with known prefixes."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.errors import InvalidAddressList
from ingest.verification.address_check import AddressCheck, LoggedRequests
from ingest.verification.address_lists import AddressList, sha256_of
from ingest.verification.verdict import CLAIMED, NOT_CHECKED, Verdict
from tests.rounds import rounds

INSIDE, OUTSIDE = "20.42.10.180", "9.9.9.7"
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
        ("ExampleBot", "2620:fe::1", NOW_US, SPOOFED),
        ("ExampleBot", OUTSIDE, LATER_US, CLAIMED),
        ("ExampleBot", OUTSIDE, 0, CLAIMED),
        ("ExampleBot", "9.9.9.0", NOW_US, NOT_CHECKED),
        ("ExampleBot", "2620:fe::", NOW_US, NOT_CHECKED),
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


OTHER_LIST = example("example-special", ("ExampleBot",), ("8.8.8.0/24",), seen=date(2026, 9, 20))


def test_either_list_of_an_agent_verifies_it_and_only_absence_from_both_is_evidence() -> None:
    check = AddressCheck([example(), OTHER_LIST])
    assert check.check("ExampleBot", "", INSIDE, NOW_US) == VERIFIED
    assert check.check("ExampleBot", "", "8.8.8.8", NOW_US) == Verdict("verified", "list:example-special 2026-09-20")
    assert check.check("ExampleBot", "", OUTSIDE, NOW_US) == Verdict(
        "spoofed", "list:example-bots 2026-09-02, list:example-special 2026-09-20"
    )


def test_absence_proves_nothing_if_one_of_the_lists_of_the_agent_is_incomplete() -> None:
    partial = example("example-special", ("ExampleBot",), ("8.8.8.0/24",), complete=False)
    for lists in ([example(), partial], [partial, example()]):
        assert AddressCheck(lists).check("ExampleBot", "", OUTSIDE, NOW_US) == CLAIMED


def test_absence_is_evidence_only_while_each_list_of_the_agent_is_fresh() -> None:
    october_15_us = int(datetime(2026, 10, 15, tzinfo=UTC).timestamp()) * 1_000_000  # after 2026-09-02 + 30 days
    assert AddressCheck([OTHER_LIST]).check("ExampleBot", "", OUTSIDE, october_15_us).state == "spoofed"
    assert AddressCheck([example(), OTHER_LIST]).check("ExampleBot", "", OUTSIDE, october_15_us) == CLAIMED


def test_absence_is_evidence_only_within_the_fresh_times() -> None:
    fresh_us = example().fresh_us
    at_edges = [fresh_us.start - 1, fresh_us.start, fresh_us.stop - 1, fresh_us.stop]
    verdicts = [CHECK.check("ExampleBot", "", OUTSIDE, at_us) for at_us in at_edges]
    assert verdicts == [CLAIMED, SPOOFED, SPOOFED, CLAIMED]


def test_list_with_a_text_that_is_no_prefix_is_named() -> None:
    with pytest.raises(InvalidAddressList, match="the address list example-bots has a text that is not a prefix"):
        AddressCheck([example(prefixes=("somewhere",))])


# Few distinct bits, so that prefixes contain each other, are adjacent, and contain the addresses.
_IPV4 = st.builds(lambda a, b: IPv4Address((8 + a << 24) + b), st.integers(0, 3), st.integers(0, 1_025))
_IPV6 = st.builds(
    lambda a, b, c: IPv6Address((0x2A00 + a << 112) + (b << 64) + c),
    st.integers(0, 1),
    st.integers(0, 3),
    st.integers(0, 5),
)
_SPECIAL = st.sampled_from(
    ["::", "::1", "10.0.0.1", "192.0.2.1", "2001:db8::1", "fe80::1%eth0", "ff02::1", "", "x", None]
)
_ADDRESSES = st.one_of(_IPV4.map(str), _IPV6.map(str), _IPV4.map(lambda each: f"::ffff:{each}"), _SPECIAL)
_PREFIXES = st.one_of(
    st.builds(lambda address, bits: ip_network((address, bits), strict=False), _IPV4, st.integers(20, 32)),
    st.builds(lambda address, bits: ip_network((address, bits), strict=False), _IPV6, st.integers(24, 128)),
)
_LISTS = st.builds(
    lambda name, tokens, prefixes, complete, seen: example(
        name, tokens, [*map(str, prefixes)], complete=complete, seen=seen
    ),
    st.uuids().map(str),
    st.lists(st.sampled_from(["ExampleBot", "Example-User", "OtherBot"]), min_size=1, unique=True),
    st.lists(_PREFIXES, min_size=1, max_size=8),
    st.booleans(),
    st.sampled_from([date(2026, 9, 2), date(2026, 9, 20)]),
)
_REQUESTS = st.tuples(
    st.sampled_from([("ExampleBot", "ExampleBot/1.0"), ("ExampleBot", "AdExample"), ("Example-User", ""), ("Bot", "")]),
    _ADDRESSES,
    st.sampled_from([0, NOW_US, LATER_US]),
)


def plain_verdict(lists: Sequence[AddressList], agent: str, user_agent: str, text: str | None, at_us: int) -> Verdict:
    """Return the verdict by the addresses and networks of the standard library."""
    lists = [each for each in lists if agent in each.tokens]
    address = plain_address(text or "")
    if not lists or address is None:
        return NOT_CHECKED if lists else CLAIMED
    for each in lists:
        if any(address in ip_network(prefix) for prefix in each.prefixes):
            return Verdict("verified", each.label)
    if address.packed.endswith(b"\0" if address.version == 4 else bytes(8)):
        return NOT_CHECKED
    is_fresh = all(at_us in each.fresh_us for each in lists)
    is_evidence = all(each.complete and agent not in each.never_spoofed for each in lists)
    if not is_fresh or not is_evidence or any(word in user_agent.lower() for each in lists for word in each.exempt):
        return CLAIMED
    return Verdict("spoofed", ", ".join(each.label for each in lists))


def plain_address(text: str) -> IPv4Address | IPv6Address | None:
    """Return an address that a client on the Internet can have, a mapped one as IPv4; None for any other text."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    address = getattr(address, "ipv4_mapped", None) or address
    is_special = not address.is_global or address.is_multicast or getattr(address, "scope_id", None)
    return None if is_special else address


@pytest.mark.long
@settings(max_examples=rounds(1_200))
@given(st.lists(_LISTS, max_size=4), st.lists(_REQUESTS, max_size=30))
def test_verdicts_agree_with_the_standard_library_one_by_one_and_for_a_whole_log(
    lists: list[AddressList], requests: list[tuple[tuple[str, str], str | None, int]]
) -> None:
    check = AddressCheck(lists)
    expected = [plain_verdict(lists, *claim, address, at_us) for claim, address, at_us in requests]
    assert [check.check(*claim, address, at_us) for claim, address, at_us in requests] == expected
    claims = [*dict.fromkeys(claim for claim, _, _ in requests)]
    addresses = [*dict.fromkeys(address for _, address, _ in requests)]
    places = check.check_all(
        LoggedRequests(
            [agent for agent, _ in claims],
            [user_agent for _, user_agent in claims],
            addresses,
            np.array([claims.index(each[0]) for each in requests], np.int64),
            np.array([addresses.index(each[1]) for each in requests], np.int64),
            np.array([each[2] for each in requests], np.int64),
        )
    )
    assert [check.verdicts[place] for place in places] == expected
