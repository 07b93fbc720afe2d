"""Evidence of a hit: data of the request by which an agent is verified. Only the country and language are stored.

The fields `address`, `accept` and `headers` of a server's row are checked here, once.
"""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ingest.errors import InvalidField
from ingest.hits.url import UNSTORABLE
from ingest.places import country
from ingest.places.language import language
from ingest.verification.addresses import NO_ADDRESS, packed, text_of

ADDRESS_CHARACTERS_MAX = 64
"""Maximum length of an address. The longest IPv6 address has 45 characters, and its zone a few more."""
ACCEPT_CHARACTERS_MAX = 8_192
HEADERS_MAX = 64
"""Maximum number of headers of a hit."""
HEADERS_CHARACTERS_MAX = 16_384
"""Maximum length of all names and values of a hit's headers."""
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, section 5.6.2


class Evidence(NamedTuple):
    """Data of the request beside the user agent. None is unknown.

    `address` is the client's IP address as text, without a port. `headers` have lower-case names. `url` is the absolute
    URL that was requested. `country`, `language` and the country of `time_zone` are stored for people: see
    `ingest.places`.
    """

    address: str | None = None
    accept: str | None = None
    headers: Mapping[str, str] | None = None
    url: str | None = None
    method: str = "GET"
    country: str | None = None
    language: str | None = None
    time_zone: str | None = None


NO_EVIDENCE = Evidence()
"""Evidence of a hit of which only the user agent is known."""


def hints(evidence: Evidence) -> str | None:
    """Return the hints of a server's row, separated by commas: one for each header that browsers send and the request
    lacked. Return None if the request lacked none of them, or if the row has no headers.

    A hint is no proof: Safari before 16.4, Tor, feed readers and plain HTTP lack these headers, too.
    """
    if evidence.headers is None:
        return None
    lacked = [] if "accept-language" in evidence.headers else ["no-accept-language"]
    if not any(name.startswith("sec-fetch-") for name in evidence.headers):
        lacked.append("no-sec-fetch")
    return ",".join(lacked) or None


def signed_evidence(
    address: str | None, headers: Sequence[tuple[bytes, bytes]], url: str | None, method: str
) -> Evidence:
    """Return the evidence of a signed request to this service.

    `headers` have lower-case names; of a repeated header the first value is used. The headers are dropped if they
    exceed the limits of a server's row, because a client may send any number of them.
    """
    if len(headers) > HEADERS_MAX or sum(len(name) + len(value) for name, value in headers) > HEADERS_CHARACTERS_MAX:
        return Evidence(address)
    texts = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(headers)}
    return Evidence(address, None, MappingProxyType(texts), url, method)


def server_evidence(
    address: str | None, accept: str | None, headers: Mapping[str, str] | None, url: str | None
) -> Evidence:
    """Return the evidence of a server's row.

    The header `accept` is used if `accept` is not sent.

    Raises:
        InvalidField: `address`, `accept` or `headers` is invalid; the error names the first one.
    """
    if address is None and accept is None and headers is None:
        return NO_EVIDENCE
    checked = _headers(headers) if headers is not None else None
    if accept is None and checked is not None:
        accept = checked.get("accept")
    return Evidence(
        _address(address) if address else None,
        _accept(accept) if accept else None,
        checked,
        url,
        country=country.of_headers(checked) if checked else None,
        language=language(checked.get("accept-language")) if checked else None,
    )


def _address(text: str) -> str:
    """Return the normal form of an address: an IPv4 address that is mapped to IPv6 as IPv4, and no zone."""
    if len(text) > ADDRESS_CHARACTERS_MAX:
        raise InvalidField("address", f"has {len(text)} characters; at most {ADDRESS_CHARACTERS_MAX} are accepted")
    number = packed(text.partition("%")[0])
    if number == NO_ADDRESS:
        raise InvalidField("address", "is not an IPv4 or IPv6 address without a port")
    return text_of(number)


def _accept(text: str) -> str:
    if len(text) > ACCEPT_CHARACTERS_MAX:
        raise InvalidField("accept", f"has {len(text)} characters; at most {ACCEPT_CHARACTERS_MAX} are accepted")
    if UNSTORABLE.search(text):
        raise InvalidField("accept", "has a control character or a lone surrogate")
    return text


def _headers(sent: Mapping[str, str]) -> Mapping[str, str]:
    """Return the headers with lower-case names, without those that have an empty value.

    nginx logs an empty text for a header that the request lacks. A value with a line end is refused, because a
    signature covers headers line by line, and one value could pass for two headers.
    """
    if len(sent) > HEADERS_MAX:
        raise InvalidField("headers", f"has {len(sent)} headers; at most {HEADERS_MAX} are accepted")
    characters = sum(len(name) + len(value) for name, value in sent.items())
    if characters > HEADERS_CHARACTERS_MAX:
        raise InvalidField("headers", f"has {characters} characters; at most {HEADERS_CHARACTERS_MAX} are accepted")
    headers: dict[str, str] = {}
    for name, value in sent.items():
        if not _NAME.fullmatch(name):
            raise InvalidField("headers", "has a name that is not the name of a header")
        if UNSTORABLE.search(value):
            raise InvalidField("headers", "has a value with a control character or a lone surrogate")
        if name.lower() in headers:
            raise InvalidField("headers", "has one name twice, in different case")
        headers[name.lower()] = value
    return MappingProxyType({name: value for name, value in headers.items() if value})
