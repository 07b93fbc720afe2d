"""Parsers of the formats with quoted fields that Apache and nginx write by default.

- combined: https://httpd.apache.org/docs/2.4/logs.html#combined; nginx writes the same.
- common: https://httpd.apache.org/docs/2.4/logs.html#common; combined without its last two fields.
- vhost-combined: combined after the requested host and port, as Debian's Apache writes it to
  other_vhosts_access.log: https://httpd.apache.org/docs/2.4/mod/mod_log_config.html#examples

A line whose request is not HTTP records no request: `-` or empty after a timeout, or the bytes of TLS or a scan.
Additional fields at the end are ignored. `fields.field_text` decodes text and undoes escapes.
"""

import re
from functools import partial

from ingest.errors import InvalidLine
from ingest.formats.fields import clf_us, field_text, size_of
from ingest.formats.request import Request

_QUOTED = rb'"((?:[^"\\]|\\.)*)"'
_TO_SIZE = rb"(\S+) \S+ [^\[]*\[([^\]]{1,40})\] " + _QUOTED + rb" (\d{3}) (\d+|-)"
_TO_USER_AGENT = _TO_SIZE + rb" " + _QUOTED + rb" " + _QUOTED
_COMBINED = re.compile(_TO_USER_AGENT + rb"(?: .*)?")
_COMMON = re.compile(_TO_SIZE + rb'(?: [^"]*)?')
_VHOST = rb"(?:[^\s:]+|\[[0-9A-Fa-f:.]+\]):\d{1,5} (?=\S+ \S+ [^\[]+ \[)"
_VHOST_COMBINED = re.compile(_VHOST + _TO_USER_AGENT + rb"(?: .*)?")
_REQUEST = re.compile(rb"([A-Za-z]+) (\S+) HTTP/\d(?:\.\d)?")


def parse_request_line(field: bytes) -> tuple[str, bytes] | None:
    """Return the method and the still escaped target of a field like `GET /a HTTP/1.1`; None if it is not HTTP."""
    request = _REQUEST.fullmatch(field)
    return None if request is None else (request[1].decode(), request[2])


def _request(line: bytes, pattern: re.Pattern[bytes], name: str) -> Request | None:
    """Parse one line of a format. Raises InvalidLine if the line is not of that format."""
    fields = pattern.fullmatch(line.rstrip(b"\r\n"))
    if fields is None:
        raise InvalidLine(f"not a line of {name} format")
    address, time, request, status, size, referrer, user_agent = (*fields.groups(), b"", b"")[:7]
    ts_us = clf_us(time.decode("latin-1"))
    request_line = parse_request_line(request)
    if request_line is None:
        return None
    method, target = request_line
    return Request(
        ts_us,
        method,
        field_text(target),
        int(status),
        field_text(referrer),
        field_text(user_agent),
        field_text(address),
        bytes=0 if size == b"-" else size_of(size),  # `%b` writes `-` for 0
    )


parse = partial(_request, pattern=_COMBINED, name="combined")
parse_common = partial(_request, pattern=_COMMON, name="common")
"""Parser of lines without a user agent: all of their page views count as `bot:empty-user-agent`."""
parse_vhost_combined = partial(_request, pattern=_VHOST_COMBINED, name="vhost-combined")
"""Parser of lines of combined format after a host and port, which are ignored."""
