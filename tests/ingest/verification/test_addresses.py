"""Addresses are found in the prefixes that contain them, and texts that are no global address are in no prefix."""

from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.verification.addresses import contains, interval, is_truncated, number_of, packed

PREFIXES = ("20.42.10.176/28", "20.42.10.192/28", "52.230.152.0/24", "2a00:1450:4864::/48", "9.9.9.9/32")


def is_in_table(address: str) -> bool:
    number = number_of(address)
    return number is not None and contains(PREFIXES, number)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("20.42.10.175", False),
        ("20.42.10.176", True),
        ("20.42.10.191", True),
        ("20.42.10.207", True),
        ("20.42.10.208", False),
        ("52.230.152.255", True),
        ("52.230.153.1", False),
        ("::ffff:20.42.10.176", True),
        ("::ffff:142a:ab0", True),  # 0x142a.0x0ab0 is 20.42.10.176
        ("::20.42.10.176", False),
        ("2a00:1450:4864::1", True),
        ("2A00:1450:4864:0:0:0:0:1", True),
        ("2a00:1450:4865::1", False),
        ("9.9.9.9", True),
    ],
)
def test_address_is_in_the_prefix_that_contains_it(address: str, expected: bool) -> None:
    assert is_in_table(address) is expected


@pytest.mark.parametrize(
    "text",
    [
        "", "-", "unknown", "localhost", "20.42.10", "20.42.10.176.1", "256.1.1.1", "020.42.10.176", "0x14.42.10.176",
        "336202416", " 20.42.10.176", "20.42.10.176\n", "20.42.10.176:443", "[2a00::1]", "2a00::1::2", "2a00:::1",
        "fe80::1%eth0", "2a00::1%1", "20.42.10.\x00176", "\udc80", "٢٠.42.10.176", "1" * 100_000, ":" * 100_000,
    ],
)  # fmt: skip
def test_text_that_is_no_address_has_no_number(text: str) -> None:
    assert number_of(text) is None


@pytest.mark.parametrize(
    "address",
    [
        "10.1.2.3", "127.0.0.1", "192.168.1.1", "172.31.255.255", "169.254.1.1", "100.127.0.1", "224.0.0.1",
        "255.255.255.255", "0.0.0.0", "192.0.2.1", "203.0.113.7", "2001:db8::1",
        "::ffff:10.1.2.3", "::1", "::", "fe80::1", "fc00::1", "fd12::1", "ff02::1",
    ],
)  # fmt: skip
def test_address_that_no_client_on_the_internet_has_has_no_number(address: str) -> None:
    assert number_of(address) is None


@pytest.mark.parametrize(
    ("address", "truncated"),
    [("20.42.10.0", True), ("20.42.10.1", False), ("2a00:1450:4864:1::", True), ("2a00:1450:4864:1::1", False)],
)
def test_anonymised_address_is_recognised(address: str, truncated: bool) -> None:
    assert is_truncated(packed(address)) is truncated


def test_text_that_is_no_prefix_is_refused() -> None:
    with pytest.raises(ValueError, match=r"10\.0\.0\.1/8 has host bits set"):
        interval("10.0.0.1/8")


Network = IPv4Network | IPv6Network
_NETWORKS = st.one_of(
    st.builds(
        lambda number, bits: ip_network((number, bits), strict=False),
        st.integers(1 << 30, 1 << 31),
        st.integers(20, 32),
    ),
    st.builds(
        lambda number, bits: ip_network((number, bits), strict=False),
        st.integers(0x2000 << 112, 0x2001 << 112),
        st.integers(32, 128),
    ),
)


@settings(max_examples=50)
@given(st.lists(_NETWORKS, max_size=20), st.lists(_NETWORKS, min_size=1, max_size=5))
def test_table_agrees_with_the_standard_library(networks: list[Network], others: list[Network]) -> None:
    prefixes = list(map(str, networks))
    edges = [each for network in (*networks, *others) for each in (network[0], network[-1])]
    beyond = [ip_address(int(edge) + step) for edge in edges if edge.version == 4 for step in (-1, 1)]
    for address in (*edges, *beyond):
        number = number_of(str(address))
        if number is not None:
            assert contains(prefixes, number) is any(address in network for network in networks)


@pytest.mark.parametrize(
    "prefix",
    ["20.42.0.0/16", "9.9.9.9", "9.9.9.9/32", "0.0.0.0/0", "20.0.0.0/255.0.0.0", "2a00::/32", "2a00::1", "::/0"],
)
def test_interval_has_the_first_and_the_last_address_of_a_prefix(prefix: str) -> None:
    network = ip_network(prefix)
    mapped = (0xFFFF << 32) if network.version == 4 else 0
    assert interval(prefix) == (mapped + int(network[0]), mapped + int(network[-1]))


@pytest.mark.parametrize(
    "text", ["", "/", "/8", "a/8", "20.42.0.1/16", "20.42.0.0/33", "0.0.0.0/-1", "0.0.0.0/ 8", "0.0.0.0/٨",
             "2a00::1/32", "::/129", "20.42/16", "0.0.0.0/8/8"]
)  # fmt: skip
def test_interval_of_a_text_that_is_no_prefix_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        interval(text)
