"""Texts without the addresses in them."""

from hypothesis import example, given
from hypothesis import strategies as st

from ingest.visitors.address_free import address_free

LINE = b'%s - - [15/Sep/2026:12:00:01 +0000] "GET /a?x=1.2 HTTP/1.1" 200 5 "-" "Chrome/120.0.6099.71"'
JSON = b'{"ts":1790380800.25,"client_ip":"%s","x":["%s, 192.0.2.1"],"time":"2026-09-15T12:00:00Z","size":10}'
address = st.one_of(st.ip_addresses(), st.ip_addresses(v=6).map(lambda each: each.exploded)).map(str)


def free(text: bytes) -> bytes:
    return bytes(address_free(text))


@given(address)
@example("::")
@example("::ffff:192.0.2.128")
@example("255.255.255.255")
def test_only_the_length_of_an_address_is_left(text: str) -> None:
    nothing, address = bytes(len(text)), text.encode()
    for form in (b"%s", b"%s\n", b"%s,", b'"%s"', b"[%s]:8080", b"x=%s;y", b"10\t%s\tGET"):
        assert free(form % address) == form % nothing
    assert free(LINE % address) == free(LINE % nothing)
    assert free(JSON % (address, address)) == free(JSON % (nothing, nothing))
    assert free((JSON % (address, b"")).upper()) == free((JSON % (nothing, b"")).upper())


def test_times_paths_and_numbers_are_kept() -> None:
    for text in (
        b'[15/Sep/2026:12:00:01 +0000] "GET /a?x=1.2 HTTP/1.1" 200 5 0.123 1790380800.25',
        b'{"a":1,"b":2,"c":3,"time":"2026-09-15T12:00:00.123+02:00"}',
        b"2026-09-15\t12:00:01\t1.2.3\t1:2:3:4:5:6:7",
        b"",
        b".",
        b":",
    ):
        assert free(text) == text


@given(st.lists(st.sampled_from([b"1.2.3.4", b"x.1", b"5.6.", b"::1", b"1:", b"a::b.c", b"", LINE % b"8.8.8.8"])))
def test_line_has_the_same_result_alone_and_among_others(lines: list[bytes]) -> None:
    assert free(b"\n".join(lines)) == b"\n".join(free(each) for each in lines)
