"""Format of a log: by name, by an nginx `log_format`, or detected from the log's first lines."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ingest.errors import InvalidLine, UnknownFormat
from ingest.formats import clf, json_products, nginx
from ingest.formats.cloudfront import FIELDS
from ingest.formats.cloudfront import Parser as CloudFrontParser
from ingest.formats.json_lines import JsonParser
from ingest.formats.request import Parse

SHOWN_CHARACTERS = 120

_PARSERS: Mapping[str, Callable[[Sequence[bytes]], Parse]] = {
    "vhost-combined": lambda head: clf.parse_vhost_combined,  # before combined, which also matches its lines
    "combined": lambda head: clf.parse,
    "common": lambda head: clf.parse_common,
    "caddy": lambda head: JsonParser(json_products.CADDY),
    "cloudfront": CloudFrontParser,
    "cloudflare": lambda head: JsonParser(json_products.CLOUDFLARE),
    "vercel": lambda head: JsonParser(json_products.VERCEL),
    "netlify": lambda head: JsonParser(json_products.NETLIFY),
}
"""Functions that take the first lines of a log and return its parser, by format. If several formats parse and match
equally many lines, the first of these formats is detected."""
HEADERS = {"cloudfront": FIELDS}
"""Prefixes of header lines, which describe the lines below them, by format."""

NAMES = tuple(_PARSERS)
NGINX_HINT = "an nginx log_format"


@dataclass(frozen=True, slots=True)
class Format:
    """Format of one log. Some parsers remember earlier lines: each log needs its own parser, and the parser needs all
    lines in order.

    `json` is the parser of a JSON log, without the check for blank lines.
    """

    name: str
    parse: Parse
    json: JsonParser | None = None


class LastHeader:
    """Search for the last header line of a log, in the pieces of the log as they are read."""

    def __init__(self, format: Format) -> None:
        self._prefix = HEADERS.get(format.name)
        self._line: bytes | None = None
        self._unfinished = b""

    def take(self, piece: bytes) -> None:
        """Search the next piece of the log."""
        if self._prefix is None:
            return
        text = b"\n" + self._unfinished + piece
        end = text.rfind(b"\n")
        start = text.rfind(b"\n" + self._prefix, 0, end) + 1
        if start:
            self._line = text[start : text.index(b"\n", start)]
        self._unfinished = text[end + 1 :]

    def line(self, ahead: bytes) -> bytes | None:
        """Return the last header, or None. `ahead` are the bytes after the pieces: the end of their last line."""
        if self._prefix is not None and self._unfinished:
            self.take(ahead.partition(b"\n")[0] + b"\n")
        return self._line


def named(name: str, head: Sequence[bytes]) -> Format:
    """Return the format of a log whose first lines are `head`.

    `name` is one of NAMES, or the text of an nginx log_format, which contains a `$`.

    Raises:
        UnknownFormat: the name is neither.
        InvalidFormat: the log_format lacks a required variable.
    """
    if "$" in name:
        return Format(name, skip_blank(nginx.compile_format(name)))
    if name not in _PARSERS:
        raise UnknownFormat(f"there is no log format {_shortened(name)}; give {_choices()}")
    parse = _PARSERS[name](head)
    return Format(name, skip_blank(parse), parse if isinstance(parse, JsonParser) else None)


def detect(head: Sequence[bytes], log: str = "the log") -> Format:
    """Return the format that parses most of a log's first lines as requests.

    The format must match at least half of the lines that are not blank; a line that records no request, such as a
    header, counts as a match. The format of a log without lines is combined. `log` is the log's name in errors.

    Raises:
        UnknownFormat: no format matches half of the lines.
    """
    lines = [line for line in head if line.strip()]
    if not lines:
        return named("combined", head)
    counts = {name: _counts(named(name, ()), lines) for name in NAMES}
    best = max(NAMES, key=counts.__getitem__)
    _, matches = counts[best]
    if matches * 2 < len(lines):
        first = _shortened(lines[0].decode("latin-1").strip())
        raise UnknownFormat(f"{log} is of no known format; it begins with {first}; give --format: {_choices()}")
    return named(best, head)


def _counts(format: Format, lines: Sequence[bytes]) -> tuple[int, int]:
    """Return how many of the lines the format parses as requests, and how many it matches."""
    requests = matches = 0
    for line in lines:
        try:
            request = format.parse(line)
        except InvalidLine:
            continue
        matches += 1
        requests += request is not None
    return requests, matches


def skip_blank(parse: Parse) -> Parse:
    """Return a parser for which a blank line records no request."""
    return lambda line: None if line.isspace() or not line else parse(line)


def _choices() -> str:
    return f"{', '.join(NAMES)}, or {NGINX_HINT} copied from nginx.conf"


def _shortened(text: str) -> str:
    printable = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[:SHOWN_CHARACTERS])
    return printable if len(text) <= SHOWN_CHARACTERS else f"{printable[:-1]}…"
