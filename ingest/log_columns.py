"""Many lines of an access log at once, by columns: those that are as plain as nearly all are.

A line that this cannot take for sure, for an escape, a byte that is not UTF-8, an odd time or a field too many, is left
to the parser of its format, so that both together say of every line what that parser alone would.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import polars as pl
import pyarrow as pa

from ingest.errors import InvalidLine
from ingest.hit import USER_AGENT_CHARACTERS_MAX, Hit
from ingest.log_field import clf_us
from ingest.path import PATH_CHARACTERS_MAX, URL_CHARACTERS_MAX
from ingest.request import Pages, Request, page_view

END = "\x01"
"""Put after a quote at the end of each line, to tell a line whose last quote is missing. No plain line has it."""

PACKED = (b"\x1f\x8b", b"x\x01", b"x^", b"x\x9c", b"x\xda", b"\x28\xb5\x2f\xfd")
"""A block that begins so Polars would take for gzip, zlib or zstd data, and unpack."""
ODD = "odd"
KNOWN_REQUESTS_MAX = 100_000
KNOWN_CHARACTERS_MAX = 512
"""Longer ones are looked at anew each time: together they would fill the memory."""
PIECE_BYTES = 8_192
"""A block with so much and no line end in it is left to the parser; a line up to twice as long may not be noticed."""

_CHARACTERS_MAX = {"referrer": URL_CHARACTERS_MAX, "user_agent": USER_AGENT_CHARACTERS_MAX}
_Said = tuple[str | None, str | None, str]
_WORD = r"[!#-Z\\-~]+"  # printable ASCII but for a quote and an opening bracket
_MONTH = {31: "Jan|Mar|May|Jul|Aug|Oct|Dec", 30: "Jan|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"}
_TIME = (
    rf"(?:(?:0[1-9]|1[0-9]|2[0-8])/(?:Feb|{_MONTH[30]})|(?:29|30)/(?:{_MONTH[30]})|31/(?:{_MONTH[31]}))"
    r"/(?:19|20)[0-9]{2}:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9] [+-](?:0[0-9]|1[0-3])[0-5][0-9]"
)
_TIME_AND_BRACKET = 28
_LOCAL_TIME, _ZONE = 20, 5
_HEAD = rf"^{_WORD} {_WORD} {_WORD} \[{_TIME}\] $"
_VHOST_HEAD = rf"^[0-9A-Za-z._-]+:[0-9]{{1,5}} {_WORD} {_WORD} {_WORD} \[{_TIME}\] $"
_REQUEST = re.compile(r"[A-Za-z]+ [!#-\[\]-~]+ HTTP/[0-9](?:\.[0-9])?")
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
"""A page view a row, as `ingest.hit.Hit` has them."""


@dataclass(frozen=True, slots=True)
class Columns:
    """What a block of lines says: how many they are, its page views (VIEWS), how many lines were skipped for each
    reason, and the places, from 0, of the lines that are left to the parser."""

    lines: int
    views: pl.DataFrame
    skipped: Mapping[str, int]
    left: list[int]


def read(block: bytes, shape: Shape, pages: Pages) -> Columns:
    """The lines of a block, each of which ends with a line end."""
    lines = _split(block, shape)
    if lines is None:
        return Columns(count := block.count(b"\n"), of_hits([]), {}, list(range(count)))
    lines = lines.with_columns(_said_of_each(lines["request"], pages))
    is_plain, is_answered, reason = pl.col("is_plain"), pl.col("is_answered"), pl.col("reason")
    kinds = lines.lazy().select(
        left=(~is_plain | (reason == ODD)).arg_true().implode(),
        method=(is_plain & (reason == "method")).sum(),
        status=(is_plain & ~is_answered & (reason != "method") & (reason != ODD)).sum(),
        excluded=(is_plain & is_answered & (reason == "excluded")).sum(),
        not_a_page=(is_plain & is_answered & (reason == "not_a_page")).sum(),
    )
    counted, views = pl.collect_all([kinds, lines.lazy().filter(is_plain & is_answered & (reason == ""))])
    left, *counts = counted.row(0)
    odd = [*left, *_odd(views)]
    plain_views = views.filter(~pl.col("row").is_in(odd)) if len(odd) > len(left) else views
    skipped = dict(zip(counted.columns[1:], counts, strict=True))
    return Columns(
        lines.height, _views(plain_views), {name: count for name, count in skipped.items() if count}, sorted(odd)
    )


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


def encoded(texts: pl.Series) -> pa.DictionaryArray:
    """The texts with each distinct one in the dictionary once. Polars looks at each text once for that, Arrow twice."""
    own = texts.rechunk().cast(pl.Categorical(pl.Categories.random())).to_arrow()  # its categories go with it
    return pa.DictionaryArray.from_arrays(own.indices.cast(pa.int32()), own.dictionary.cast(pa.string()))


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


def _said_of_each(requests: pl.Series, pages: Pages) -> list[pl.Series]:
    """For each request its path and utm_source, and the reason why it is no page view: ODD if the parser must say."""
    distinct = encoded(requests)
    codes = pl.Series(distinct.indices)
    known = _known(pages)
    said = [known.get(request) or _said(request, pages, known) for request in distinct.dictionary.to_pylist()]
    return [
        pl.Series(name, [row[place] for row in said], dtype=pl.String).gather(codes)
        for place, name in enumerate(("path", "utm_source", "reason"))
    ]


@lru_cache
def _known(pages: Pages) -> dict[str, _Said]:
    """What was said of requests before. A dictionary takes a fifth of the time of a cached function."""
    return {}


def _said(request: str, pages: Pages, known: dict[str, _Said]) -> _Said:
    said = _said_of(request, pages)
    if len(request) <= KNOWN_CHARACTERS_MAX:
        if len(known) >= KNOWN_REQUESTS_MAX:
            known.clear()
        known[request] = said
    return said


def _said_of(request: str, pages: Pages) -> _Said:
    """Of `GET target HTTP/version`; a query that says nothing here is cut off first, so that there are few to say."""
    if _REQUEST.fullmatch(request) is None:
        return None, None, ODD
    if not request.startswith("GET "):
        return None, None, "method"
    target = request[4:].partition(" ")[0]
    if len(target) <= PATH_CHARACTERS_MAX and "utm_source=" not in target:
        target = target.partition("?")[0] or target
    return _cached_said(target, pages) if len(target) <= KNOWN_CHARACTERS_MAX else _said_of_target(target, pages)


def _said_of_target(target: str, pages: Pages) -> _Said:
    try:
        found = page_view(Request(0, "GET", "" if target == "-" else target, 200, "", ""), pages)
    except InvalidLine:
        return None, None, ODD
    return (found.path, found.utm_source, "") if isinstance(found, Hit) else (None, None, found)


_cached_said = lru_cache(KNOWN_REQUESTS_MAX)(_said_of_target)


def _odd(views: pl.DataFrame) -> list[int]:
    """The places of page views whose referrer or user agent is not as it stands, or over its limit."""
    odd = pl.lit(value=False)
    for column, most in _CHARACTERS_MAX.items():
        distinct = views[column].unique()
        is_odd = distinct.str.contains(_ODD) | (distinct.str.len_chars() > most)
        if len(texts := distinct.filter(is_odd)):
            odd |= pl.col(column).is_in(texts.implode())
    return views.filter(odd)["row"].to_list()


def _views(plain: pl.DataFrame) -> pl.DataFrame:
    time = plain.select(time=pl.col("head").str.slice(-_TIME_AND_BRACKET, _TIME_AND_BRACKET - 2))["time"]
    local = time.str.head(_LOCAL_TIME).str.to_datetime("%d/%b/%Y:%H:%M:%S", time_unit="us").cast(pl.Int64)
    return plain.select(
        "path",
        ts_us=local + _offsets(time.str.tail(_ZONE)),
        user_agent=_field("user_agent"),
        referrer=_field("referrer").replace("", None),
        utm_source="utm_source",
        status=pl.col("tail").str.slice(1, 3).cast(pl.Int16),
    )


def _offsets(zones: pl.Series) -> pl.Series | int:
    """Microseconds to add to local times for UTC."""
    offsets = {zone: clf_us(f"01/Jan/1970:00:00:00 {zone}") for zone in zones.unique()}
    if len(offsets) <= 1:
        return next(iter(offsets.values()), 0)
    return zones.replace_strict(offsets, return_dtype=pl.Int64)


def _field(name: str) -> pl.Expr:
    return pl.when(pl.col(name) != "-").then(pl.col(name)).otherwise(pl.lit(""))
