"""Which format a log is in, by name, by an nginx `log_format`, or by its first lines."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ingest.errors import InvalidLine, UnknownFormat
from ingest.formats import clf, json_lines, nginx
from ingest.formats.cloudfront import FIELDS
from ingest.formats.cloudfront import Parser as CloudFrontParser
from ingest.formats.request import Parse, Request

SHOWN_CHARACTERS = 120

_PARSERS: Mapping[str, Callable[[Sequence[bytes]], Parse]] = {
    "vhost-combined": lambda head: clf.parse_vhost_combined,  # its lines are of combined too: stands before it
    "combined": lambda head: clf.parse,
    "common": lambda head: clf.parse_common,
    "caddy": lambda head: json_lines.parse_caddy,
    "cloudfront": CloudFrontParser,
    "cloudflare": lambda head: json_lines.parse_cloudflare,
    "vercel": lambda head: json_lines.VercelParser(),
    "netlify": lambda head: json_lines.parse_netlify,
}
"""A parser for a log of which the first lines are given. Of formats that read as many, the first is detected."""
_HEADERS = {"cloudfront": FIELDS}
"""How a line begins that says how those below it are read, in formats that have such."""

NAMES = tuple(_PARSERS)
NGINX_HINT = "an nginx log_format"


@dataclass(frozen=True, slots=True)
class Format:
    """How the lines of one log are read, in order: some formats keep what earlier lines said, so that each log needs
    its own. `parse` answers None to a line that tells of no request, and raises InvalidLine."""

    name: str
    parse: Parse


class LastHeader:
    """The last line of a log that says how those below it are read, found in pieces of the log as they come."""

    def __init__(self, format: Format) -> None:
        self._beginning = _HEADERS.get(format.name)
        self._line: bytes | None = None
        self._begun = b""

    def take(self, piece: bytes) -> None:
        if self._beginning is None:
            return
        text = b"\n" + self._begun + piece
        end = text.rfind(b"\n")
        found = text.rfind(b"\n" + self._beginning, 0, end) + 1
        if found:
            self._line = text[found : text.index(b"\n", found)]
        self._begun = text[end + 1 :]

    def line(self, ahead: bytes) -> bytes | None:
        """None if there was none. `ahead` is what follows the pieces, which may have ended inside of it."""
        if self._beginning is not None and self._begun:
            self.take(ahead.partition(b"\n")[0] + b"\n")
        return self._line


def named(name: str, head: Sequence[bytes]) -> Format:
    """The format of a name in NAMES, or of an nginx log_format, told by its `$`, for the log of these first lines.

    Raises:
        UnknownFormat: it is neither.
        InvalidFormat: the log_format lacks what is needed.
    """
    if "$" in name:
        return Format(name, _unless_blank(nginx.compiled(name)))
    if name not in _PARSERS:
        raise UnknownFormat(f"there is no log format {_shortened(name)}; give {_choices()}")
    return Format(name, _unless_blank(_PARSERS[name](head)))


def detect(head: Sequence[bytes], log: str = "the log") -> Format:
    """The format that reads most of a log's first lines as requests, and knows more than half of those not blank.

    It knows also what it says to be no request, such as headers. No line at all is combined. `log` is named in errors.

    Raises:
        UnknownFormat: no format does.
    """
    lines = [line for line in head if line.strip()]
    if not lines:
        return named("combined", head)
    read = {name: _counts(named(name, ()), lines) for name in NAMES}
    best = max(NAMES, key=read.__getitem__)
    _, known = read[best]
    if known * 2 <= len(lines):
        first = _shortened(lines[0].decode("latin-1").strip())
        raise UnknownFormat(f"{log} is of no known format; it begins with {first}; give --format: {_choices()}")
    return named(best, head)


def _counts(format: Format, lines: Sequence[bytes]) -> tuple[int, int]:
    """How many of the lines the format reads as requests, and how many it knows."""
    requests = known = 0
    for line in lines:
        try:
            request = format.parse(line)
        except InvalidLine:
            continue
        known += 1
        requests += request is not None
    return requests, known


def _unless_blank(parse: Parse) -> Parse:
    def parsed(line: bytes) -> Request | None:
        return None if line.isspace() or not line else parse(line)

    return parsed


def _choices() -> str:
    return f"{', '.join(NAMES)}, or {NGINX_HINT} as it stands in nginx.conf"


def _shortened(text: str) -> str:
    printable = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[:SHOWN_CHARACTERS])
    return printable if len(text) <= SHOWN_CHARACTERS else f"{printable[:-1]}…"
