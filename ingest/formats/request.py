"""Request that a log line records: the result of the parsers of all formats."""

from collections.abc import Callable
from typing import NamedTuple

LINE_BYTES_MAX = 64 * 1024
"""Number of bytes of a line that are parsed. A longer line is malformed unless its first LINE_BYTES_MAX bytes match the
format, as when only additional fields follow them."""


class Request(NamedTuple):
    """Fields of a request. `ts_us` is microseconds since 1970; a field that is not logged, or logged as `-`, is empty.

    `address` is the client's address as it is logged, and `accept` the request's Accept header. `bytes` is the
    size of the response, `ms` its time in milliseconds, and `cache` the state of the cache in front of the server.
    `country` is the code that an edge network or the server found, and `language` the Accept-Language header.
    """

    ts_us: int
    method: str
    target: str
    status: int
    referrer: str
    user_agent: str
    address: str = ""
    accept: str = ""
    bytes: int | None = None
    ms: float | None = None
    cache: str = ""
    country: str = ""
    language: str = ""


Parse = Callable[[bytes], Request | None]
"""Parser of one line, with or without its line end. It returns None for a line that records no request, and raises
InvalidLine for a line that is not of the format."""
