"""A line of Amazon CloudFront's standard log into a request.

Source: https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/standard-logs-reference.html. Columns are
separated by tabs and named by the last `#Fields:` line above. Every value is percent-encoded once, a `%` as `%25`, and
an empty one is `-`.
"""

import re
from collections.abc import Sequence
from urllib.parse import unquote_to_bytes

from ingest.errors import InvalidLine
from ingest.formats.fields import decoded, iso_us, shown
from ingest.formats.request import Request

FIELDS = b"#Fields:"
_NEEDED = ("date", "time", "cs-method", "cs-uri-stem", "sc-status", "cs(User-Agent)")
_OPTIONAL = ("cs-uri-query", "cs(Referer)")
_STATUS = re.compile(rb"\d{3}")


class Parser:
    """Reads a log line by line, and keeps the columns that its headers name."""

    def __init__(self, head: Sequence[bytes] = ()) -> None:
        """`head`: the log's first lines, whose first header holds until another comes."""
        self._columns: dict[str, int] = {}
        header = next((line for line in head if line.startswith(FIELDS)), None)
        if header is not None:
            self._columns = _columns(header)

    def __call__(self, line: bytes) -> Request | None:
        """Read one line: None of a header.

        Raises:
            InvalidLine: it is not of the columns, or no header names those that are needed.
        """
        if line.startswith(FIELDS):
            self._columns = _columns(line)
        if line.startswith(b"#"):
            return None
        return _request(line.rstrip(b"\r\n").split(b"\t"), self._columns)


def _columns(header: bytes) -> dict[str, int]:
    return {name: i for i, name in enumerate(header.removeprefix(FIELDS).decode("latin-1").split())}


def _request(fields: list[bytes], columns: dict[str, int]) -> Request:
    missing = [name for name in _NEEDED if name not in columns]
    if missing:
        raise InvalidLine(f"no #Fields line above names the column {missing[0]}")
    if len(fields) < len(columns):
        raise InvalidLine(f"has {len(fields)} columns of {len(columns)}")
    date, time, method, stem, status, user_agent = (fields[columns[name]] for name in _NEEDED)
    query, referrer = (_text(fields[columns[name]]) if name in columns else "" for name in _OPTIONAL)
    if not _STATUS.fullmatch(status):
        raise InvalidLine("its sc-status is no status")
    return Request(
        iso_us(f"{date.decode('latin-1')}T{time.decode('latin-1')}"),
        _text(method),
        f"{_text(stem)}?{query}" if query else _text(stem),
        int(status),
        referrer,
        _text(user_agent),
    )


def _text(field: bytes) -> str:
    return "" if field == b"-" else shown(decoded(unquote_to_bytes(field)))
