"""Request that a log line records: the result of the parsers of all formats."""

from collections.abc import Callable
from typing import NamedTuple


class Request(NamedTuple):
    """Fields of a request. `ts_us` is microseconds since 1970; a field logged as `-` is empty."""

    ts_us: int
    method: str
    target: str
    status: int
    referrer: str
    user_agent: str


Parse = Callable[[bytes], Request | None]
"""Parser of one line, with or without its line end. It returns None for a line that records no request, and raises
InvalidLine for a line that is not of the format."""
