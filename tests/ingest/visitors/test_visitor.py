"""A visitor depends on the salt, the network and the user agent, and on nothing else."""

import ipaddress
from collections.abc import Iterable

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.imports.dictionary import TEXTS
from ingest.visitors.visitor import DAY_US, NO_NETWORK, Salt, network, of_columns, of_views

SALTS = {0: Salt(bytes(32)), 1: Salt(bytes(range(32)))}
ADDRESSES = [None, "192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2", "2001:db8:0:1::1", "host.example", ""]


def salts_of(project: str, days: Iterable[int]) -> dict[int, Salt]:
    assert project == "site"
    return {day: SALTS[day] for day in days if day in SALTS}


def test_block_is_encrypted_by_aes_256() -> None:
    """The vector of FIPS 197, appendix C.3."""
    block = bytes.fromhex("00112233445566778899aabbccddeeff")
    expected = int.from_bytes(bytes.fromhex("8ea2b7ca516745bf"), "little", signed=True)
    salt = Salt(bytes(range(32)))
    assert salt.visitors(block * 2, "log").tolist() == [expected] * 2
    assert [salt.of_blocks([block] * number, "server") for number in (1, 2)] == [[expected], [expected] * 2]


@pytest.mark.parametrize(
    ("address", "prefix"),
    [
        ("192.0.2.7", "0:ffff:c000:207::"),
        ("::ffff:192.0.2.7", "0:ffff:c000:207::"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:DB8:1:2::", "2001:db8:1:2::"),
    ],
)
def test_network_is_an_ipv4_address_or_the_first_half_of_an_ipv6_address(address: str, prefix: str) -> None:
    assert network(address) == ipaddress.ip_address(prefix).packed[:8]


@pytest.mark.parametrize(
    "text", [None, "", "-", "host.example", "192.0.2", "192.0.2.7:80", "1.2.3.4\0", "fe80::1%eth0"]
)
def test_text_that_is_no_address_has_no_network(text: str | None) -> None:
    assert network(text) == NO_NETWORK


def test_views_of_one_network_and_user_agent_on_one_day_have_one_visitor() -> None:
    first = ("2001:db8::1", "a", DAY_US)
    others = [("2001:db8:0:1::1", "a", DAY_US), ("2001:db8::1", "b", DAY_US), ("2001:db8::1", "a", 0)]
    same = [("2001:db8::9", "a", 2 * DAY_US - 1)]
    visitor, *rest = of_views("site", [first, *same, *others, ("2001:db8::1", "a", 2 * DAY_US)], "log", salts_of)
    assert rest[0] == visitor
    assert len({visitor, *rest[1:4]}) == 4
    assert rest[4] is None


@given(
    st.lists(
        st.tuples(
            st.sampled_from(ADDRESSES), st.sampled_from(["", "a", "é", "b" * 500]), st.integers(0, 3 * DAY_US - 1)
        )
    )
)
def test_columns_of_a_log_have_the_visitors_of_its_views(views: list[tuple[str | None, str, int]]) -> None:
    addresses, user_agents, times = zip(*views, strict=True) if views else ((), (), ())
    columns = pa.array(addresses, TEXTS), pa.array(user_agents, TEXTS), pa.array(times, pa.int64())
    assert of_columns("site", *columns, salts_of).to_pylist() == of_views("site", views, "log", salts_of)
