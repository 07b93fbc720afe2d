"""Many lines of an access log at once, by columns: those that are as plain as nearly all are.

A line that this cannot take for sure, for an escape, a byte that is not UTF-8, an odd time or a field too many, is left
to the parser of its format, so that both together say of every line what that parser alone would.
"""

from codecs import BOM_UTF8
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Literal

import polars as pl

from ingest.log_field import clf_us
from ingest.log_memory import LEFT, METHOD, NOT_LOGGED, NOTHING, PAGE, SKIPPED, STATUS, Memory
from ingest.page_views import VIEWS
from ingest.texts import Texts

END = "\x01"
"""Put after a quote at the end of each line, to tell a line whose last quote is missing. No plain line has it."""

PACKED = (b"\x1f\x8b", b"x\x01", b"x^", b"x\x9c", b"x\xda", b"\x28\xb5\x2f\xfd")
"""A block that begins so Polars would take for gzip, zlib or zstd data, and unpack."""
PIECE_BYTES = 8_192
"""A block with so much and no line end in it is left to the parser; a line up to twice as long may not be noticed."""

_OUTCOME = (
    pl.when(pl.col("is_plain") & (pl.col("said") != LEFT))
    .then(
        pl.when(pl.col("is_answered") | (pl.col("said") == METHOD))
        .then(pl.col("said"))
        .otherwise(pl.lit(STATUS, pl.UInt8))
    )
    .otherwise(pl.lit(LEFT, pl.UInt8))
)
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
        return ["head", "request", "tail", *after]


SHAPES: Mapping[str, Shape] = {
    "combined": Shape(_HEAD, r"^ [0-9]{3} (?:[0-9]+|-) $", has_user_agent=True),
    "vhost-combined": Shape(_VHOST_HEAD, r"^ [0-9]{3} (?:[0-9]+|-) $", has_user_agent=True),
    "common": Shape(_HEAD, r"^ [0-9]{3} (?:[0-9]+|-)(?: .*)?$", has_user_agent=False),
}
"""By the name of the format; another format's lines all go through its parser."""


@dataclass(frozen=True, slots=True)
class Columns:
    """What a block of lines says: how many they are, its page views (`page_views.VIEWS`), how many lines were skipped
    for each reason, and the places, from 0, of the lines that are left to the parser."""

    lines: int
    views: pl.DataFrame
    skipped: Mapping[str, int]
    left: list[int]


def read(block: bytes, shape: Shape, memory: Memory) -> Columns:
    """The lines of a block, each of which ends with a line end; the texts of `views` are categoricals of the memory.

    In few steps, each of many columns: threads take turns between two, and have cores of their own within one.
    """
    lines = _split(block, shape)
    if lines is None:
        return Columns(count := block.count(b"\n"), memory.views_of([]), {}, list(range(count)))
    requests, said = memory.requests.numbers(lines["request"]), memory.requests.said
    lines = lines.with_columns(request=requests, said=said["outcome"].gather(requests))
    lines = lines.with_row_index("row").with_columns(outcome=_OUTCOME)
    counts = dict(lines["outcome"].value_counts().iter_rows())
    left = lines["row"].filter(lines["outcome"] == LEFT).to_list() if LEFT in counts else []
    plain, odd = _views(lines.filter(pl.col("outcome") == PAGE), said, memory)
    skipped: dict[str, int] = {name: counts[number] for name, number in SKIPPED.items() if number in counts}
    return Columns(lines.height, plain, skipped, sorted([*left, *odd]))


def _split(block: bytes, shape: Shape) -> pl.DataFrame | None:
    """A row a line: its fields as they stand between the quotes, whether all but the request is plain, and whether it
    was answered. None if lines cannot be told apart for sure."""
    if block.startswith(PACKED) or _has_long_line(block):
        return None
    ends = block.replace(b"\r\n", b"\n") if b"\r" in block else block
    if b"\r" in ends:  # Polars takes a field of it alone for an empty one; no server writes it
        return None
    lines = _unmarked(ends, shape)
    if lines is not None or END.encode() in ends:
        return lines
    marked = ends.replace(b"\n", f'"{END}\n'.encode())
    try:
        return _read(marked, shape, encoding="utf8")
    except pl.exceptions.ComputeError:
        return _read(marked, shape, encoding="utf8-lossy")


def _unmarked(block: bytes, shape: Shape) -> pl.DataFrame | None:
    """The lines of a block without a copy of it whose ends are marked; None if one has more or fewer quotes than plain
    ones. Polars refuses more. Of fewer it says nothing, but then its fields are not all of the bytes."""
    quotes = len(shape.fields) - 1
    plain = _without_escaped(block, quotes)
    if plain[: plain.find(b"\n")].count(b'"') != quotes or plain.startswith(BOM_UTF8):  # it leaves out what is empty
        return None
    try:
        lines = _read(plain, shape)
    except pl.exceptions.ComputeError:  # or not UTF-8
        return None
    return lines if lines["bytes"].item(0) + lines.height * (quotes + 1) == len(plain) else None


def _without_escaped(block: bytes, quotes: int) -> bytes:
    """With quotes alone in place of each line that has an escaped one, and is the parser's to read."""
    parts, start, at = list[bytes](), 0, block.find(b"\\")
    while at >= 0:
        after = at + 2
        if block[at + 1 : after] == b'"':
            begin, after = block.rfind(b"\n", start, at) + 1, block.find(b"\n", at)
            parts += [block[start:begin], b'"' * quotes]
            start = after
        at = block.find(b"\\", after)
    return b"".join([*parts, block[start:]]) if parts else block


def _has_long_line(block: bytes) -> bool:
    """Whether a line may be of PIECE_BYTES or more; surely so if one is twice as long."""
    pieces = range(0, len(block) - PIECE_BYTES, PIECE_BYTES)
    return any(block.find(b"\n", start, start + PIECE_BYTES) < 0 for start in pieces)


def _read(block: bytes, shape: Shape, encoding: Literal["utf8", "utf8-lossy"] | None = None) -> pl.DataFrame:
    """With an encoding the ends of its lines are marked; else a line with more quotes than plain ones is an error."""
    fields = pl.scan_csv(
        BytesIO(block),
        separator='"',
        quote_char=None,
        has_header=False,
        schema=dict.fromkeys([*shape.fields, "end"] if encoding else shape.fields, pl.String),
        extra_columns="ignore" if encoding else "raise",
        missing_columns="insert",
        empty_string_is_null=False,
        encoding=encoding or "utf8",
    )
    read = pl.sum_horizontal(pl.col(shape.fields).str.len_bytes().sum())
    if not encoding:
        fields = fields.with_columns(end=pl.lit(END))
    if not shape.has_user_agent:
        fields = fields.with_columns(referrer=pl.lit("-"), user_agent=pl.lit("-"))
    tail = pl.col("tail")
    is_answered = tail.str.starts_with(" 2") | tail.str.starts_with(" 304 ")
    kept = "head", "request", "tail", "referrer", "user_agent"
    plan = fields.select(*kept, is_plain=_is_plain(shape), is_answered=is_answered, bytes=read)
    return plan.collect(engine="in-memory", optimizations=pl.QueryOptFlags.none())  # there is nothing to optimise


def _is_plain(shape: Shape) -> pl.Expr:
    of_all = pl.col("head").str.contains(shape.head) & pl.col("tail").str.contains(shape.tail)
    if not shape.has_user_agent:
        return of_all & (pl.col("end") == END)
    is_whole = ((pl.col("rest") == "") & (pl.col("end") == END)) | pl.col("rest").str.starts_with(" ")
    escapes = pl.col("referrer").str.ends_with("\\") | pl.col("user_agent").str.ends_with("\\")
    return of_all & (pl.col("gap") == " ") & is_whole & ~escapes


def _views(lines: pl.DataFrame, said: pl.DataFrame, memory: Memory) -> tuple[pl.DataFrame, list[int]]:
    """The page views of plain lines, their texts categoricals of the memory; and the places of the lines that are left
    for a text of theirs."""
    agents, referrers = memory.user_agents.numbers(lines["user_agent"]), memory.referrers.numbers(lines["referrer"])
    user_agent, referrer, request = pl.col("user_agent"), pl.col("referrer"), pl.col("request")
    local = pl.col("head").str.slice(-_TIME_AND_BRACKET, _LOCAL_TIME)
    zone = pl.col("head").str.slice(-_ZONE_AND_BRACKET, _ZONE)
    first = lines["head"].item(0)[-_ZONE_AND_BRACKET:][:_ZONE] if lines.height else "+0000"
    views = lines.with_columns(user_agent=agents, referrer=referrers).select(
        "row",
        path=pl.lit(said["path"]).gather(request),
        ts_us=local.str.to_datetime("%d/%b/%Y:%H:%M:%S", time_unit="us", cache=False).cast(pl.Int64),
        user_agent=pl.when(user_agent != NOT_LOGGED)
        .then(user_agent)
        .otherwise(NOTHING)
        .cat.to(memory.user_agents.dtype),
        referrer=pl.when(referrer > NOT_LOGGED).then(referrer).cat.to(memory.referrers.dtype),
        utm_source=pl.lit(said["utm_source"]).gather(request),
        status=pl.col("tail").str.slice(1, 3).cast(pl.Int16),
        is_odd=_is_odd(user_agent, memory.user_agents) | _is_odd(referrer, memory.referrers),
        is_elsewhere=zone != first,
    )
    zones = lines.select(zone)["head"] if views["is_elsewhere"].any() else None
    is_odd = views["is_odd"]
    odd: list[int] = views["row"].filter(is_odd).to_list() if is_odd.any() else []
    views = views.select(*VIEWS).with_columns(pl.col("ts_us") + _offset_us(first) if zones is None else _offsets(zones))
    return views.filter(~is_odd) if odd else views, odd


def _is_odd(numbers: pl.Expr, texts: Texts) -> pl.Expr:
    return pl.lit(texts.said["is_odd"]).gather(numbers)


def _offsets(zones: pl.Series) -> pl.Expr:
    offsets = {zone: _offset_us(zone) for zone in zones.unique()}
    return pl.col("ts_us") + pl.lit(zones.replace_strict(offsets, return_dtype=pl.Int64))


def _offset_us(zone: str) -> int:
    """Microseconds to add to local times for UTC."""
    return clf_us(f"01/Jan/1970:00:00:00 {zone}")
