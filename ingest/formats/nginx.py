"""An nginx `log_format` into a parser of its lines.

Source: https://nginx.org/en/docs/http/ngx_http_log_module.html#log_format. Lines are matched by RE2, whose time is
linear in the line: https://github.com/google/re2/wiki/WhyRE2. A variable in quotes ends at the next quote that is not
escaped, any other at the first place where the rest fits. Both kinds of escapes are undone: `\\x22` of
`escape=default`, `\\"` and `\\u0001` of `escape=json`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

import re2  # type: ignore[import-untyped]  # ships no types

from ingest.errors import InvalidFormat, InvalidLine
from ingest.formats.clf import request_line
from ingest.formats.fields import decoded, shown, time_us
from ingest.formats.request import Parse, Request

_TIMES = ("msec", "time_iso8601", "time_local")
"""The most exact first: of several, the first is read."""
_TARGETS = ("request_uri", "uri", "document_uri")
_QUERIES = ("args", "query_string")
_READ = frozenset(
    (*_TIMES, *_TARGETS, *_QUERIES, "request", "request_method", "status", "http_referer", "http_user_agent")
)

_FORMS = {
    "msec": rb"\d{1,12}(?:\.\d{1,9})?",
    "time_iso8601": rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:Z|[+-]\d\d:\d\d)",
    "time_local": rb"\d{2}/[A-Z][a-z]{2}/\d{4}:\d{2}:\d{2}:\d{2} [+-]\d{4}",
    "status": rb"\d{3}",
}
_TO_QUOTE = rb'(?:[^"\\]|\\.)*'
_ANYTHING = rb".*?"

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_DIRECTIVE = re.compile(
    rf"\s*(?:log_format\s+\S+\s+)?(?:escape=\w+\s+)?((?:{_QUOTED})(?:\s+(?:{_QUOTED}))*)\s*;?\s*", re.DOTALL
)
_PIECE = re.compile(_QUOTED, re.DOTALL)
_BACKSLASHED = re.compile(r"\\([\\'\"])")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))", re.ASCII)
_URI_AND_ARGS = re.compile(r"\$(?:document_)?uri(?:\$is_args|\?)\$(?:args|query_string)\b")
_ESCAPE = re.compile(rb"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_WHITESPACE = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}


def compiled(log_format: str) -> Parse:
    """The parser of lines of a format: its text, or the whole directive, as it stands in nginx.conf.

    Variables that say nothing of a page view match anything, also nothing.

    Raises:
        InvalidFormat: it lacks what a page view needs: a time, a request, a status and a user agent.
    """
    text = _URI_AND_ARGS.sub("$request_uri", _unquoted(log_format))
    names = {braced or bare for braced, bare in _VARIABLE.findall(text)}
    if missing := _missing(names):
        raise InvalidFormat(f"this log_format lacks {'; '.join(missing)}")
    captured: list[str] = []
    form = _form(_parts(text, captured))

    def parse(line: bytes) -> Request | None:
        found = form.fullmatch(line.rstrip(b"\r\n"))
        if found is None:
            raise InvalidLine("not a line of this log_format")
        return _request(dict(zip(captured, found.groups(), strict=True)))

    return parse


def _unquoted(log_format: str) -> str:
    directive = _DIRECTIVE.fullmatch(log_format)
    if directive is None:
        return log_format
    return "".join(_BACKSLASHED.sub(r"\1", piece[1:-1]) for piece in _PIECE.findall(directive[1]))


def _missing(names: set[str]) -> list[str]:
    has_request = "request" in names or ("request_method" in names and names.intersection(_TARGETS))
    needed = {
        "a time (add $time_iso8601, $time_local or $msec)": names.intersection(_TIMES),
        "a request (add $request, or $request_method and $request_uri)": has_request,
        "a status (add $status)": "status" in names,
        "a user agent, without which nothing tells people from bots (add $http_user_agent)": "http_user_agent" in names,
    }
    return [what for what, found in needed.items() if not found]


def _form(parts: Iterable[bytes]) -> "re2._Regexp":
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.dot_nl = True
    try:
        return re2.compile(b"".join(parts), options)
    except re2.error:
        raise InvalidFormat("this log_format is too long to be one") from None


def _parts(text: str, captured: list[str]) -> Iterator[bytes]:
    """The pattern, in pieces; `captured` becomes the names of its groups, in order."""
    end = 0
    for variable in _VARIABLE.finditer(text):
        name = variable[1] or variable[2]
        in_quotes = text[variable.end() : variable.end() + 1] == '"'
        form = _FORMS.get(name, _TO_QUOTE if in_quotes else _ANYTHING)
        is_first = name in _READ and name not in captured
        if is_first:
            captured.append(name)
        yield re2.escape(text[end : variable.start()].encode()) + (b"(" if is_first else b"(?:") + form + b")"
        end = variable.end()
    yield re2.escape(text[end:].encode())


def _request(said: Mapping[str, bytes]) -> Request | None:
    ts_us = time_us(next(said[name] for name in _TIMES if name in said).decode("latin-1"))
    asked = _method_and_target(said)
    if asked is None:
        return None
    method, target = asked
    return Request(
        ts_us,
        method,
        target,
        int(said["status"]),
        _text(said.get("http_referer", b"")),
        _text(said["http_user_agent"]),
    )


def _method_and_target(said: Mapping[str, bytes]) -> tuple[str, str] | None:
    if "request" in said:
        asked = request_line(said["request"])
        return asked and (asked[0], _text(asked[1]))
    method = _text(said["request_method"])
    if "request_uri" in said:
        return method, _text(said["request_uri"])
    # $uri is decoded: what would read as an escape or a query is part of the path.
    path = _text(said.get("uri") or said.get("document_uri", b""))
    path = path.replace("%", "%25").replace("?", "%3F").replace("#", "%23")
    query = next((_text(said[name]) for name in _QUERIES if name in said), "")
    return method, f"{path}?{query}" if query else path


def _text(field: bytes) -> str:
    if field == b"-":
        return ""
    return shown(decoded(_ESCAPE.sub(_unescaped, field) if b"\\" in field else field))


def _unescaped(found: re.Match[bytes]) -> bytes:
    if found[1]:
        return bytes.fromhex(found[1].decode())
    if found[2]:
        return chr(int(found[2], 16)).encode(errors="replace")
    return _WHITESPACE.get(found[3], found[3])
