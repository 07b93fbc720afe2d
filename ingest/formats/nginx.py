"""Compiler of an nginx `log_format` into a parser of its lines.

Source: https://nginx.org/en/docs/http/ngx_http_log_module.html#log_format. RE2 matches the lines in time
linear in their length: https://github.com/google/re2/wiki/WhyRE2. A variable in quotes ends at the next quote that is
not escaped; any other variable ends at the first place where the rest of the format matches. `fields.field_text` undoes
the escapes of `escape=default` (`\\x22`) and of `escape=json` (`\\"`, `\\u0001`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping

import re2  # type: ignore[import-untyped]  # ships no types

from ingest.errors import InvalidFormat, InvalidLine
from ingest.formats.clf import parse_request_line
from ingest.formats.fields import field_text, ms_of, size_of, time_us
from ingest.formats.request import Parse, Request
from ingest.places import country

_TIMES = ("msec", "time_iso8601", "time_local")
"""Variables with the time, the most precise first; the first one in the format is read."""
_TARGETS = ("request_uri", "uri", "document_uri")
_QUERIES = ("args", "query_string")
_ADDRESS = "remote_addr"
"""Variable with the client's address, which nginx's realip module sets behind a proxy. Headers with an address, such as
$http_x_forwarded_for, are not read, because a client can send any address in them."""
_HEADERS = ("http_referer", "http_user_agent", _ADDRESS, "http_accept")
_SIZES = ("bytes_sent", "body_bytes_sent")
_DURATIONS = {"request_time": 1_000, "request_time_ms": 1, "request_time_us": 0.001}
"""Variables with the time of the response, and their units in ms: nginx's, and names for Apache's `%{ms}T` and `%D`."""
_ANSWER = (*_SIZES, *_DURATIONS, "upstream_cache_status")
_COUNTRIES = (*(f"http_{name.replace('-', '_')}" for name in country.HEADERS), "geoip_country_code")
"""Variables with the country, which the owner of the log trusts by writing one of them into the format."""
_LANGUAGE = "http_accept_language"
_USED = frozenset(
    (*_ANSWER, *_COUNTRIES, _LANGUAGE, *_TIMES, *_TARGETS, *_QUERIES, "request", "request_method", "status", *_HEADERS)
)

_PATTERNS = {
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


def compile_format(log_format: str) -> Parse:
    """Return the parser for a log_format: the text of the format, or the whole directive copied from nginx.conf.

    A variable whose value a page view does not need matches any text, including an empty one.

    Raises:
        InvalidFormat: the format lacks a time, a request, a status or a user agent.
    """
    text = _URI_AND_ARGS.sub("$request_uri", _unquoted(log_format))
    if missing := _missing({braced or bare for braced, bare in _VARIABLE.findall(text)}):
        raise InvalidFormat(f"this log_format lacks {'; '.join(missing)}")
    captured: list[str] = []
    pattern = _compile(_parts(text, captured))

    def parse(line: bytes) -> Request | None:
        match = pattern.fullmatch(line.rstrip(b"\r\n"))
        if match is None:
            raise InvalidLine("not a line of this log_format")
        return _request(dict(zip(captured, match.groups(), strict=True)))

    return parse


def _unquoted(log_format: str) -> str:
    directive = _DIRECTIVE.fullmatch(log_format)
    if directive is None:
        return log_format
    return "".join(_BACKSLASHED.sub(r"\1", piece[1:-1]) for piece in _PIECE.findall(directive[1]))


def _missing(names: set[str]) -> list[str]:
    has_request = "request" in names or ("request_method" in names and names.intersection(_TARGETS))
    required = {
        "a time (add $time_iso8601, $time_local or $msec)": names.intersection(_TIMES),
        "a request (add $request, or $request_method and $request_uri)": has_request,
        "a status (add $status)": "status" in names,
        "a user agent, without which people and bots cannot be distinguished (add $http_user_agent)": "http_user_agent"
        in names,
    }
    return [part for part, is_present in required.items() if not is_present]


def _compile(parts: Iterable[bytes]) -> "re2._Regexp":
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.dot_nl = True
    try:
        return re2.compile(b"".join(parts), options)
    except re2.error:
        raise InvalidFormat("this log_format is too long") from None


def _parts(text: str, captured: list[str]) -> Iterator[bytes]:
    """Yield the pieces of the pattern, and append the names of its groups to `captured`, in order."""
    end = 0
    for variable in _VARIABLE.finditer(text):
        name = variable[1] or variable[2]
        in_quotes = text[variable.end() : variable.end() + 1] == '"'
        pattern = _PATTERNS.get(name, _TO_QUOTE if in_quotes else _ANYTHING)
        is_first = name in _USED and name not in captured
        if is_first:
            captured.append(name)
        yield re2.escape(text[end : variable.start()].encode()) + (b"(" if is_first else b"(?:") + pattern + b")"
        end = variable.end()
    yield re2.escape(text[end:].encode())


def _request(variables: Mapping[str, bytes]) -> Request | None:
    ts_us = time_us(next(variables[name] for name in _TIMES if name in variables).decode("latin-1"))
    method_and_target = _method_and_target(variables)
    if method_and_target is None:
        return None
    method, target = method_and_target
    referrer, user_agent, address, accept = (field_text(variables.get(name, b"")) for name in _HEADERS)
    sent = next((variables[name] for name in _SIZES if name in variables), b"")
    took = next((name for name in _DURATIONS if name in variables), "request_time")
    return Request(
        ts_us,
        method,
        target,
        int(variables["status"]),
        referrer,
        user_agent,
        address,
        accept,
        0 if sent == b"-" else size_of(sent),  # Apache's `%b` writes `-` for 0
        ms_of(variables.get(took, b""), _DURATIONS[took]),
        field_text(variables.get("upstream_cache_status", b"")),
        next(filter(country.known, (field_text(variables.get(name, b"")) for name in _COUNTRIES)), ""),
        field_text(variables.get(_LANGUAGE, b"")),
    )


def _method_and_target(variables: Mapping[str, bytes]) -> tuple[str, str] | None:
    if "request" in variables:
        request_line = parse_request_line(variables["request"])
        return request_line and (request_line[0], field_text(request_line[1]))
    method = field_text(variables["request_method"])
    if "request_uri" in variables:
        return method, field_text(variables["request_uri"])
    # nginx decodes $uri: characters that look like an escape or a query belong to the path.
    path = field_text(variables.get("uri") or variables.get("document_uri", b""))
    path = path.replace("%", "%25").replace("?", "%3F").replace("#", "%23")
    query = next((field_text(variables[name]) for name in _QUERIES if name in variables), "")
    return method, f"{path}?{query}" if query else path
