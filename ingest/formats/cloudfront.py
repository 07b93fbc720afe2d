"""Parser of Amazon CloudFront's standard logs.

Source: https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/standard-logs-reference.html. Columns are
separated by tabs; the last `#Fields:` line above a line names them. Every value is percent-encoded once (`%` as `%25`);
`-` means no value.
"""

import re
from collections.abc import Sequence
from urllib.parse import unquote_to_bytes

from ingest.errors import InvalidLine
from ingest.formats.fields import decode, iso_us, ms_of, size_of, storable
from ingest.formats.request import Request

FIELDS = b"#Fields:"
_REQUIRED = ("date", "time", "cs-method", "cs-uri-stem", "sc-status", "cs(User-Agent)")
_OPTIONAL = ("cs-uri-query", "cs(Referer)", "c-ip", "cs-accept")
_OTHERS = ("sc-bytes", "time-taken", "x-edge-result-type", "c-country")
_STATUS = re.compile(rb"\d{3}")


class Parser:
    """Parser of one log. The parser remembers the columns of the last header: each log needs its own parser."""

    def __init__(self, head: Sequence[bytes] = ()) -> None:
        """Take the columns from the first header among `head`, the first lines of the log."""
        self._columns: dict[str, int] = {}
        header = next((line for line in head if line.startswith(FIELDS)), None)
        if header is not None:
            self._columns = _columns(header)

    def __call__(self, line: bytes) -> Request | None:
        """Parse one line; return None for a header. Raises InvalidLine if no header names the line's columns."""
        if line.startswith(FIELDS):
            self._columns = _columns(line)
        if line.startswith(b"#"):
            return None
        return _request(line.rstrip(b"\r\n").split(b"\t"), self._columns)


def _columns(header: bytes) -> dict[str, int]:
    return {name: i for i, name in enumerate(header.removeprefix(FIELDS).decode("latin-1").split())}


def _request(fields: list[bytes], columns: dict[str, int]) -> Request:
    missing = [name for name in _REQUIRED if name not in columns]
    if missing:
        raise InvalidLine(f"no #Fields line above names the column {missing[0]}")
    named = max(columns.values()) + 1  # more than `columns` has, if a header repeats a name
    if len(fields) < named:
        raise InvalidLine(f"has {len(fields)} columns of {named}")
    date, time, method, stem, status, user_agent = (fields[columns[name]] for name in _REQUIRED)
    query, referrer, address, accept = (_text(fields[columns[name]]) if name in columns else "" for name in _OPTIONAL)
    size, seconds, cache, country = (fields[columns[name]] if name in columns else b"" for name in _OTHERS)
    if not _STATUS.fullmatch(status):
        raise InvalidLine("its sc-status is no status")
    return Request(
        iso_us(f"{date.decode('latin-1')}T{time.decode('latin-1')}"),
        _text(method),
        f"{_text(stem)}?{query}" if query else _text(stem),
        int(status),
        referrer,
        _text(user_agent),
        address,
        accept,
        size_of(size),
        ms_of(seconds),
        _text(cache),
        _text(country),
    )


def _text(field: bytes) -> str:
    return "" if field == b"-" else storable(decode(unquote_to_bytes(field)))
