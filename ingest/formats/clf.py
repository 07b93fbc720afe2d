"""A line of a server's access log, in the formats that are text with quotes, into a request.

- combined: https://httpd.apache.org/docs/2.4/logs.html#combined; nginx writes the same.
- common: https://httpd.apache.org/docs/2.4/logs.html#common; combined without its last two fields.
- vhost-combined: combined after the host and port that were asked, as Debian's Apache writes it into
  other_vhosts_access.log: https://httpd.apache.org/docs/2.4/mod/mod_log_config.html#examples

A line whose request is not one of HTTP tells of none: `-` or empty after a timeout, or what TLS or a scan sent.

Further fields at the end are let be. Bytes that are not UTF-8 are read as Latin-1. Apache escapes a quote as `\\"` and
a tab as `\\t`, nginx as `\\x22` and `\\x09`; all are undone.
"""

import re

from ingest.errors import InvalidLine
from ingest.formats.fields import clf_us, decoded, shown
from ingest.formats.request import Request

_QUOTED = rb'"((?:[^"\\]|\\.)*)"'
_TO_SIZE = rb"\S+ \S+ [^\[]*\[([^\]]{1,40})\] " + _QUOTED + rb" (\d{3}) (?:\d+|-)"
_TO_USER_AGENT = _TO_SIZE + rb" " + _QUOTED + rb" " + _QUOTED
_COMBINED = re.compile(_TO_USER_AGENT + rb"(?: .*)?")
_COMMON = re.compile(_TO_SIZE + rb'(?: [^"]*)?')
_VHOST_COMBINED = re.compile(
    rb"(?:[^\s:]+|\[[0-9A-Fa-f:.]+\]):\d{1,5} (?=\S+ \S+ [^\[]+ \[)" + _TO_USER_AGENT + rb"(?: .*)?"
)
_REQUEST = re.compile(rb"([A-Za-z]+) (\S+) HTTP/\d(?:\.\d)?")
_ESCAPE = re.compile(rb"\\(?:x([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_WHITESPACE = {b"b": b"\b", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


def parse(line: bytes) -> Request | None:
    """Read one line of combined format.

    Raises:
        InvalidLine: it is not of that format.
    """
    return _request(line, _COMBINED, "combined")


def parse_common(line: bytes) -> Request | None:
    """Read one line of common format. It names no user agent: all its page views count as `bot:empty-user-agent`.

    Raises:
        InvalidLine: it is not of that format.
    """
    return _request(line, _COMMON, "common")


def parse_vhost_combined(line: bytes) -> Request | None:
    """Read one line of combined format after a host and port. Which host was asked is not kept.

    Raises:
        InvalidLine: it is not of that format.
    """
    return _request(line, _VHOST_COMBINED, "vhost-combined")


def request_line(written: bytes) -> tuple[str, bytes] | None:
    """The method, and the target with its escapes, of a line like `GET /a HTTP/1.1`; None of any other."""
    request = _REQUEST.fullmatch(written)
    return None if request is None else (request[1].decode(), request[2])


def _request(line: bytes, form: re.Pattern[bytes], name: str) -> Request | None:
    fields = form.fullmatch(line.rstrip(b"\r\n"))
    if fields is None:
        raise InvalidLine(f"not a line of {name} format")
    time, request, status, referrer, user_agent = (*fields.groups(), b"", b"")[:5]
    ts_us = clf_us(time.decode("latin-1"))
    asked = request_line(request)
    if asked is None:
        return None
    method, target = asked
    return Request(ts_us, method, _text(target), int(status), _text(referrer), _text(user_agent))


def _text(field: bytes) -> str:
    if field == b"-":
        return ""
    return shown(decoded(_ESCAPE.sub(_unescaped, field) if b"\\" in field else field))


def _unescaped(found: re.Match[bytes]) -> bytes:
    return bytes.fromhex(found[1].decode()) if found[1] else _WHITESPACE.get(found[2], found[2])
