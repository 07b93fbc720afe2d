"""Many lines of an access log at once, by columns: those that are as plain as nearly all are.

A line that this cannot take for sure, for an escape, a byte that is not UTF-8, an odd time or a field too many, is left
to the parser of its format, so that both together say of every line what that parser alone would.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Literal

import polars as pl

from ingest.errors import InvalidLine
from ingest.hit import USER_AGENT_CHARACTERS_MAX, Hit
from ingest.log_field import clf_us
from ingest.path import PATH_CHARACTERS_MAX, URL_CHARACTERS_MAX
from ingest.request import Pages, Request, Skip, page_view
from ingest.texts import Texts

END = "\x01"
"""Put after a quote at the end of each line, to tell a line whose last quote is missing. No plain line has it."""

PACKED = (b"\x1f\x8b", b"x\x01", b"x^", b"x\x9c", b"x\xda", b"\x28\xb5\x2f\xfd")
"""A block that begins so Polars would take for gzip, zlib or zstd data, and unpack."""
KNOWN_MAX, KNOWN_BYTES_MAX = 300_000, 32 * 1024 * 1024
"""With as many texts a memory is full; each line of a log may have three that no other has."""
PIECE_BYTES = 8_192
"""A block with so much and no line end in it is left to the parser; a line up to twice as long may not be noticed."""

_PAGE, _METHOD, _STATUS, _EXCLUDED, _NOT_A_PAGE, _LEFT = range(6)
"""What comes of a line; one that is left is for the parser to say."""
_SKIPPED: Mapping[Skip, int] = {
    "method": _METHOD,
    "status": _STATUS,
    "excluded": _EXCLUDED,
    "not_a_page": _NOT_A_PAGE,
}
_OUTCOME = (
    pl.when(pl.col("is_plain") & (pl.col("said") != _LEFT))
    .then(
        pl.when(pl.col("is_answered") | (pl.col("said") == _METHOD))
        .then(pl.col("said"))
        .otherwise(pl.lit(_STATUS, pl.UInt8))
    )
    .otherwise(pl.lit(_LEFT, pl.UInt8))
)
_NOTHING, _NOT_LOGGED = 0, 1
_FIRST_TEXTS = ("", "-")
"""Of user agents and referrers."""
_WORD = r"[!#-Z\\-~]+"  # printable ASCII but for a quote and an opening bracket
_MONTH = {31: "Jan|Mar|May|Jul|Aug|Oct|Dec", 30: "Jan|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"}
_TIME = (
    rf"(?:(?:0[1-9]|1[0-9]|2[0-8])/(?:Feb|{_MONTH[30]})|(?:29|30)/(?:{_MONTH[30]})|31/(?:{_MONTH[31]}))"
    r"/(?:19|20)[0-9]{2}:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9] [+-](?:0[0-9]|1[0-3])[0-5][0-9]"
)
_TIME_AND_BRACKET = 28
_ZONE_AND_BRACKET = 7
_LOCAL_TIME, _ZONE = 20, 5
_HEAD = rf"^{_WORD} {_WORD} {_WORD} \[{_TIME}\] $"
_VHOST_HEAD = rf"^[0-9A-Za-z._-]+:[0-9]{{1,5}} {_WORD} {_WORD} {_WORD} \[{_TIME}\] $"
_REQUEST = r"^[A-Za-z]+ [!#-\[\]-~]+ HTTP/[0-9](?:\.[0-9])?$"
_TARGET = r"^GET ([^ ]+)"
_ODD = r"[\\\x{FFFD}\x00-\x1f\x7f]"  # and what `path.UNSTORABLE` has, but surrogates, of which UTF-8 has none


@dataclass(frozen=True, slots=True)
class Shape:
    """How the quotes divide a line: before the request, after it, and whether referrer and user agent follow."""

    head: str
    tail: str
    has_user_agent: bool

    @property
    def fields(self) -> list[str]:
        """What stands between the quotes, in order."""
        after = ["referrer", "gap", "user_agent", "rest"] if self.has_user_agent else []
        return ["head", "request", "tail", *after, "end"]


SHAPES: Mapping[str, Shape] = {
    "combined": Shape(_HEAD, r"^ [0-9]{3} (?:[0-9]+|-) $", has_user_agent=True),
    "vhost-combined": Shape(_VHOST_HEAD, r"^ [0-9]{3} (?:[0-9]+|-) $", has_user_agent=True),
    "common": Shape(_HEAD, r"^ [0-9]{3} (?:[0-9]+|-)(?: .*)?$", has_user_agent=False),
}
"""By the name of the format; another format's lines all go through its parser."""

VIEWS = pl.Schema(
    {
        "path": pl.String(),
        "ts_us": pl.Int64(),
        "user_agent": pl.String(),
        "referrer": pl.String(),
        "utm_source": pl.String(),
        "status": pl.Int16(),
    }
)
"""A page view a row, as `ingest.hit.Hit` has them; its texts may be categoricals."""


class Memory:
    """What was said of requests, user agents and referrers before, under one choice of pages."""

    def __init__(self, pages: Pages) -> None:
        self.pages = pages
        self.stored = pl.Categorical(pl.Categories.random())
        """Of a column of paths or of utm_source."""
        # None of these holds this memory: a full one would be let go by the collector alone, which comes too late.
        self.targets = Texts(partial(_said_of_targets, pages=pages, stored=self.stored))
        self.requests = Texts(partial(_said_of_requests, targets=self.targets))
        self.user_agents = Texts(partial(_is_odd, characters_max=USER_AGENT_CHARACTERS_MAX), _FIRST_TEXTS)
        self.referrers = Texts(partial(_is_odd, characters_max=URL_CHARACTERS_MAX), _FIRST_TEXTS)
        self._others_bytes = 0

    def views_of(self, hits: list[Hit]) -> pl.DataFrame:
        """Page views that the parser of a format found, of one type with those that `read` finds."""
        views = of_hits(hits)
        self._others_bytes += int(views.estimated_size())
        return views.with_columns(
            pl.col("path", "utm_source").cast(self.stored),
            user_agent=self.user_agents.numbers(views["user_agent"]).cat.to(self.user_agents.dtype),
            referrer=self.referrers.numbers(views["referrer"]).cat.to(self.referrers.dtype),
        )

    @property
    def is_full(self) -> bool:
        """Whether another is to be begun: it holds as much as one may, or what it holds is not whole."""
        each = self.targets, self.requests, self.user_agents, self.referrers
        size = sum(texts.bytes for texts in each) + self._others_bytes
        count = sum(texts.count for texts in each)
        return count > KNOWN_MAX or size > KNOWN_BYTES_MAX or not all(texts.is_whole for texts in each)


def memory(pages: Pages) -> Memory:
    """That of all logs that are read so: for a stretch, whose views must be of one type. A full one is begun anew."""
    if _memory(pages).is_full:
        _memory.cache_clear()
    return _memory(pages)


_memory = lru_cache(1)(Memory)


@dataclass(frozen=True, slots=True)
class Columns:
    """What a block of lines says: how many they are, its page views (VIEWS), how many lines were skipped for each
    reason, and the places, from 0, of the lines that are left to the parser."""

    lines: int
    views: pl.DataFrame
    skipped: Mapping[str, int]
    left: list[int]


def read(block: bytes, shape: Shape, memory: Memory) -> Columns:
    """The lines of a block, each of which ends with a line end; the texts of `views` are categoricals of the memory."""
    lines = _split(block, shape)
    if lines is None:
        return Columns(count := block.count(b"\n"), memory.views_of([]), {}, list(range(count)))
    requests, said = memory.requests.numbers(lines["request"]), memory.requests.said
    lines = lines.with_columns(request=requests, said=said["outcome"].gather(requests)).with_columns(outcome=_OUTCOME)
    counts = dict(lines["outcome"].value_counts().iter_rows())
    left = lines["row"].filter(lines["outcome"] == _LEFT).to_list() if _LEFT in counts else []
    views = lines.filter(pl.col("outcome") == _PAGE)
    plain, odd = _views(views, said, memory)
    skipped: dict[str, int] = {name: counts[number] for name, number in _SKIPPED.items() if number in counts}
    return Columns(lines.height, plain, skipped, sorted([*left, *odd]))


def of_hits(hits: list[Hit]) -> pl.DataFrame:
    """Page views that the parser of a format found."""
    columns = {
        "path": [hit.path for hit in hits],
        "ts_us": [hit.ts_us for hit in hits],
        "user_agent": [hit.user_agent for hit in hits],
        "referrer": [hit.referrer for hit in hits],
        "utm_source": [hit.utm_source for hit in hits],
        "status": [hit.status for hit in hits],
    }
    return pl.DataFrame(columns, schema=VIEWS)


def _split(block: bytes, shape: Shape) -> pl.DataFrame | None:
    """A row a line: its fields as they stand between the quotes, whether all but the request is plain, and whether it
    was answered. None if lines cannot be told apart for sure."""
    if END.encode() in block or block.startswith(PACKED) or _has_long_line(block):
        return None
    ends = block.replace(b"\r\n", b"\n") if b"\r" in block else block
    if b"\r" in ends:  # Polars takes a field of it alone for an empty one; no server writes it
        return None
    marked = ends.replace(b"\n", f'"{END}\n'.encode())
    try:
        read = _read(marked, shape, "utf8")
    except pl.exceptions.ComputeError:
        read = _read(marked, shape, "utf8-lossy")
    tail = pl.col("tail")
    return read.select(
        "head",
        "request",
        "tail",
        "referrer",
        "user_agent",
        is_plain=_is_plain(shape),
        is_answered=tail.str.starts_with(" 2") | tail.str.starts_with(" 304 "),
    ).with_row_index("row")


def _has_long_line(block: bytes) -> bool:
    """Whether a line may be of PIECE_BYTES or more; surely so if one is twice as long."""
    pieces = range(0, len(block) - PIECE_BYTES, PIECE_BYTES)
    return any(block.find(b"\n", start, start + PIECE_BYTES) < 0 for start in pieces)


def _read(marked: bytes, shape: Shape, encoding: Literal["utf8", "utf8-lossy"]) -> pl.DataFrame:
    read = pl.read_csv(
        marked,
        separator='"',
        quote_char=None,
        has_header=False,
        schema=dict.fromkeys(shape.fields, pl.String),
        extra_columns="ignore",
        missing_columns="insert",
        empty_string_is_null=False,
        encoding=encoding,
    )
    return read if shape.has_user_agent else read.with_columns(referrer=pl.lit("-"), user_agent=pl.lit("-"))


def _is_plain(shape: Shape) -> pl.Expr:
    of_all = pl.col("head").str.contains(shape.head) & pl.col("tail").str.contains(shape.tail)
    if not shape.has_user_agent:
        return of_all & (pl.col("end") == END)
    is_whole = ((pl.col("rest") == "") & (pl.col("end") == END)) | pl.col("rest").str.starts_with(" ")
    escapes = pl.col("referrer").str.ends_with("\\") | pl.col("user_agent").str.ends_with("\\")
    return of_all & (pl.col("gap") == " ") & is_whole & ~escapes


def _said_of_requests(texts: pl.Series, targets: Texts) -> pl.DataFrame:
    """What comes of the line of each `GET target HTTP/version` if that is plain and was answered, and what is stored.

    A query that says nothing here is cut off first, so that there are few targets to look at.
    """
    text, target = pl.col("text"), pl.col("target")
    is_cut = (target.str.len_bytes() <= PATH_CHARACTERS_MAX) & ~target.str.contains("utm_source=", literal=True)
    asked = (
        texts.to_frame("text")
        .lazy()  # all at once: each step by itself takes as long as these few texts
        .with_columns(is_odd=~text.str.contains(_REQUEST), is_get=text.str.starts_with("GET "))
        .with_columns(target=pl.when(~pl.col("is_odd") & pl.col("is_get")).then(text.str.extract(_TARGET)))
        .with_columns(target=pl.when(is_cut & ~target.str.starts_with("?")).then(_path(target)).otherwise(target))
        .collect()
    )
    said = targets.said_of(asked["target"])
    outcome = pl.when("is_odd").then(_LEFT).when("is_get").then(said["outcome"]).otherwise(_METHOD).cast(pl.UInt8)
    return asked.select(said["path"], said["utm_source"], outcome=outcome)


def _path(target: pl.Expr) -> pl.Expr:
    return target.str.extract(r"^([^?]*)")


def _said_of_targets(targets: pl.Series, pages: Pages, stored: pl.Categorical) -> pl.DataFrame:
    said = [_said_of(target, pages) for target in targets]
    return pl.DataFrame(said, {"path": stored, "utm_source": stored, "outcome": pl.UInt8()}, orient="row")


def _said_of(target: str, pages: Pages) -> tuple[str | None, str | None, int]:
    try:
        found = page_view(Request(0, "GET", "" if target == "-" else target, 200, "", ""), pages)
    except InvalidLine:
        return None, None, _LEFT
    return (found.path, found.utm_source, _PAGE) if isinstance(found, Hit) else (None, None, _SKIPPED[found])


def _is_odd(texts: pl.Series, characters_max: int) -> pl.DataFrame:
    """Whether a referrer or user agent is not as it stands, or over its limit."""
    return pl.DataFrame({"is_odd": texts.str.contains(_ODD) | (texts.str.len_chars() > characters_max)})


def _views(lines: pl.DataFrame, said: pl.DataFrame, memory: Memory) -> tuple[pl.DataFrame, list[int]]:
    """The page views of plain lines, their texts categoricals of the memory; and the places of the lines that are left
    for a text of theirs."""
    agents, referrers = memory.user_agents.numbers(lines["user_agent"]), memory.referrers.numbers(lines["referrer"])
    lines = lines.with_columns(user_agent=agents, referrer=referrers)
    is_odd = _of(agents, memory.user_agents) | _of(referrers, memory.referrers)
    odd: list[int] = lines["row"].filter(is_odd).to_list() if is_odd.any() else []
    plain = lines.filter(~is_odd) if odd else lines
    local = plain["head"].str.slice(-_TIME_AND_BRACKET, _LOCAL_TIME)
    local_us = local.str.to_datetime("%d/%b/%Y:%H:%M:%S", time_unit="us", cache=False).cast(pl.Int64)
    user_agent, referrer = pl.col("user_agent"), pl.col("referrer")
    return plain.select(
        path=said["path"].gather(plain["request"]),
        ts_us=local_us + _offsets(plain["head"].str.slice(-_ZONE_AND_BRACKET, _ZONE)),
        user_agent=pl.when(user_agent != _NOT_LOGGED)
        .then(user_agent)
        .otherwise(_NOTHING)
        .cat.to(memory.user_agents.dtype),
        referrer=pl.when(referrer > _NOT_LOGGED).then(referrer).cat.to(memory.referrers.dtype),
        utm_source=said["utm_source"].gather(plain["request"]),
        status=pl.col("tail").str.slice(1, 3).cast(pl.Int16),
    ), odd


def _of(numbers: pl.Series, texts: Texts) -> pl.Series:
    return texts.said["is_odd"].gather(numbers)


def _offsets(zones: pl.Series) -> pl.Series | int:
    """Microseconds to add to local times for UTC."""
    first = zones.item(0) if len(zones) else "+0000"
    is_one = (zones == first).all()
    offsets = {zone: clf_us(f"01/Jan/1970:00:00:00 {zone}") for zone in ([first] if is_one else zones.unique())}
    if is_one:
        return offsets[first]
    return zones.replace_strict(offsets, return_dtype=pl.Int64)
