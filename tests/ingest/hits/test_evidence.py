"""The evidence of a server's row is normalised, or its first invalid field is named with its limit."""

import pytest

from ingest.errors import InvalidField
from ingest.hits.evidence import (
    ACCEPT_CHARACTERS_MAX,
    HEADERS_CHARACTERS_MAX,
    HEADERS_MAX,
    NO_EVIDENCE,
    Evidence,
    hints,
    server_evidence,
    signed_evidence,
)

NO_ADDRESSES = ("192.0.2.7:80", "[2001:db8::1]", "example.com", "192.0.2.256", "1", "\ud800")


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ("192.0.2.7", "192.0.2.7"), ("::ffff:192.0.2.7", "192.0.2.7"), ("2001:DB8:0:0::1", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1"), ("", None),
    ],
)  # fmt: skip
def test_address_has_one_spelling(sent: str, expected: str | None) -> None:
    assert server_evidence(sent, None, None, None).address == expected


def test_names_of_headers_are_in_lower_case_and_the_accept_header_is_used_unless_accept_is_sent() -> None:
    headers = {"Accept": "text/markdown", "Sec-Fetch-Mode": "navigate"}
    expected = {"accept": "text/markdown", "sec-fetch-mode": "navigate"}
    url = "https://example.com/a"
    assert server_evidence(None, None, headers, url) == Evidence(None, "text/markdown", expected, url)
    assert server_evidence(None, "text/html", headers, url).accept == "text/html"


def test_row_without_evidence_has_none() -> None:
    assert server_evidence(None, None, None, "https://example.com/a") is NO_EVIDENCE


@pytest.mark.parametrize(
    ("address", "accept", "message"),
    [
        *((text, None, "address: is not an IPv4 or IPv6 address without a port") for text in NO_ADDRESSES),
        ("1" * 65, None, "address: has 65 characters; at most 64 are accepted"),
        (None, "a" * (ACCEPT_CHARACTERS_MAX + 1), "accept: has 8193 characters; at most 8192 are accepted"),
        (None, "a\n", "accept: has a control character or a lone surrogate"),
    ],
    ids=lambda value: ascii(value)[:20],
)
def test_invalid_address_or_accept_header_is_refused(address: str | None, accept: str | None, message: str) -> None:
    with pytest.raises(InvalidField, match=f"^{message}$"):
        server_evidence(address, accept, None, None)


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({str(number): "" for number in range(HEADERS_MAX + 1)}, "has 65 headers; at most 64 are accepted"),
        ({str(number): "" for number in range(10_000)}, "has 10000 headers; at most 64 are accepted"),
        ({"a": "b" * HEADERS_CHARACTERS_MAX}, "has 16385 characters; at most 16384 are accepted"),
        ({"a": "b\nsignature: c"}, "has a value with a control character or a lone surrogate"),
        ({"a b": "c"}, "has a name that is not the name of a header"),
        ({"": "c"}, "has a name that is not the name of a header"),
        ({"Accept": "a", "accept": "b"}, "has one name twice, in different case"),
    ],
)
def test_invalid_headers_are_refused_with_the_limit(headers: dict[str, str], reason: str) -> None:
    with pytest.raises(InvalidField) as raised:
        server_evidence(None, None, headers, None)
    assert (raised.value.field, raised.value.reason) == ("headers", reason)


def test_headers_at_their_limits_are_accepted() -> None:
    headers = {f"{number:02}": "a" * (HEADERS_CHARACTERS_MAX // HEADERS_MAX - 2) for number in range(HEADERS_MAX)}
    assert server_evidence(None, None, headers, None).headers == headers


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (None, None),
        ({}, "no-accept-language,no-sec-fetch"),
        ({"accept-language": ""}, "no-sec-fetch"),
        ({"sec-fetch-site": "none"}, "no-accept-language"),
        ({"accept-language": "en", "sec-fetch-mode": "navigate"}, None),
    ],
)
def test_hints_name_the_headers_that_the_request_lacked(headers: dict[str, str] | None, expected: str | None) -> None:
    assert hints(Evidence(headers=headers)) == expected


def test_header_with_an_empty_value_is_one_that_the_request_lacked() -> None:
    headers = {"Accept-Language": "", "sec-fetch-mode": "cors", "signature-input": ""}
    evidence = server_evidence(None, None, headers, None)
    assert evidence.headers == {"sec-fetch-mode": "cors"}
    assert hints(evidence) == "no-accept-language"


def test_signed_request_has_its_first_headers_by_name() -> None:
    url = "https://example.com/pixel.gif"
    headers = [(b"host", b"example.com"), (b"signature", b"g=:YQ==:"), (b"signature", b"h=:Yg==:"), (b"x", b"\xe9")]
    expected = {"host": "example.com", "signature": "g=:YQ==:", "x": "\u00e9"}
    assert signed_evidence("192.0.2.7", headers, url, "POST") == Evidence("192.0.2.7", None, expected, url, "POST")


@pytest.mark.parametrize(
    "headers", [[(b"h%d" % number, b"") for number in range(HEADERS_MAX + 1)], [(b"a", b"b" * HEADERS_CHARACTERS_MAX)]]
)
def test_signed_request_with_too_many_headers_has_only_its_address(headers: list[tuple[bytes, bytes]]) -> None:
    assert signed_evidence("192.0.2.7", headers, "https://example.com/", "GET") == Evidence("192.0.2.7")
