"""Texts with 12 bits in place of each address."""

import random
import tracemalloc
from collections import Counter
from ipaddress import IPv4Address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ingest.visitors.address_free import BITS, address_free

LINE = b'%s - - [15/Sep/2026:12:00:01 +0000] "GET /a?x=1.2 HTTP/1.1" 200 5 "-" "Chrome/120.0.6099.71"'
JSON = b'{"ts":1790380800.25,"client_ip":"%s","x":["%s, 192.0.2.1"],"time":"2026-09-15T12:00:00Z","size":10}'
FORMS = (b"%s", b"%s\n", b"%s,", b'"%s"', b"[%s]:8080", b"x=%s;y", b"10\t%s\tGET", b"::ffff:%s", LINE)
unmapped = st.ip_addresses().filter(
    lambda each: not getattr(each, "ipv4_mapped", None)
)  # it is written as an IPv4 address
address = st.one_of(unmapped.map(str), st.ip_addresses(v=6).map(lambda each: each.packed.hex(":", 2)))


@given(address)
@example("::")
@example("2001:db8::")
@example("255.255.255.255")
def test_address_is_replaced_by_the_same_two_bytes_in_any_text(text: str) -> None:
    bits = address_free(text.encode())
    assert len(bits) == 2
    assert min(bits) >= 128
    for form in FORMS[: -2 if ":" in text else None]:
        assert address_free(form % text.encode()).count(bits) == address_free(form % b"").count(bits) + 1
        assert text.encode() not in address_free(form % text.encode())
    one, other = JSON % (text.encode(), text.encode()), JSON % (b"", b"")
    assert address_free(one).count(bits) >= address_free(other).count(bits) + 2
    for colon in (b"%3A", b"%3a"):
        assert address_free(b"/?ip=" + text.encode().replace(b":", colon)) == b"/?ip=" + bits


def test_spellings_of_an_address_have_the_same_bits() -> None:
    for forms in (
        (
            b"2001:db8::1",
            b"2001:DB8::1",
            b"2001:0db8:0:0:0:0:0:1",
            b":2001:db8::1",
            b"2001:db8::1:",
            b"2001%3Adb8%3a%3A1",
        ),
        (b"9.9.9.9", b"9%2E9%2e9.9"),
    ):
        assert len({address_free(each) for each in forms}) == 1


@pytest.mark.long
def test_as_many_addresses_have_each_value() -> None:
    """Count the addresses of a random million, and of a network, by their bits."""
    numbers = [*random.Random(1).choices(range(1 << 32), k=200_000), *range(0x09090000, 0x0909FFFF)]
    counts = Counter(address_free(str(IPv4Address(number)).encode()) for number in numbers)
    mean = len(numbers) / (1 << BITS)
    assert len(counts) == 1 << BITS
    assert max(counts.values()) < 2 * mean
    assert min(counts.values()) > mean / 2


def test_times_paths_and_numbers_are_kept() -> None:
    for text in (
        b'[15/Sep/2026:12:00:01 +0000] "GET /a?x=1.2 HTTP/1.1" 200 5 0.123 1790380800.25',
        b'{"a":1,"b":2,"c":3,"time":"2026-09-15T12:00:00.123+02:00"}',
        b"2026-09-15\t12:00:01\t1.2.3\t1:2:3:4:5:6:7\taa:bb:cc:dd:ee:ff",
        b"",
        b".",
        b":",
    ):
        assert address_free(text) == text


@given(st.lists(st.sampled_from([b"1.2.3.4", b"x.1", b"5.6.", b"::1", b"1:", b"a::b.c", b"", LINE % b"8.8.8.8"])))
def test_line_has_the_same_result_alone_and_among_others(lines: list[bytes]) -> None:
    assert address_free(b"\n".join(lines)) == b"\n".join(address_free(each) for each in lines)


@pytest.mark.long
@pytest.mark.parametrize("text", [b":", b"::a", b"a:b:", b"1.", b"1.2.3.4 ", b"abcdef", b"%3a"])
def test_memory_does_not_depend_on_the_text(text: bytes) -> None:
    """Replace a text of 1 MiB."""
    text *= (1 << 20) // len(text)
    tracemalloc.start()
    try:
        address_free(text)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
