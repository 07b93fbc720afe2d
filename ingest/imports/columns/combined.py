"""Parser of whole blocks by columns, for the formats of the combined family.

Arrow's CSV reader splits the lines into columns, with `"` as the delimiter, and each distinct value is parsed once. The
parser of the format (`ingest.formats.clf`) is the reference. This module parses plain lines, nearly all lines of a
log, and leaves any other line to that parser: lines with an escape, a byte that is not UTF-8, an unusual time, or a
different number of quotes.
"""

import re
from bisect import bisect_right
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from ingest.formats.fields import clf_us
from ingest.hits.evidence import ADDRESS_CHARACTERS_MAX
from ingest.imports.columns.page_views import (
    CHARACTERS_MAX,
    Columns,
    is_odd,
    outcomes,
    repeated,
    skipped_and_unparsed,
    views_of,
    within_limit,
)
from ingest.imports.dictionary import TEXTS, map_values, one_array, replace
from ingest.imports.request_cache import PAGE, RequestCache
from ingest.imports.rows import VIEWS

PIECE_BYTES = 8_192
"""Size in bytes of the pieces of a block that must each have a line end. If a piece has no line end, all lines of the
block are left to the parser of the format. A line shorter than two pieces may go unnoticed."""
NOT_LOGGED = "-"

_WORD = r"[!#-Z\\-~]+"  # printable ASCII except a quote and an opening bracket
_ADDRESS = r"[!#-Z\]-~]+"  # a word without a backslash, which may begin an escape
_MONTH = {31: "Jan|Mar|May|Jul|Aug|Oct|Dec", 30: "Jan|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"}
_DAY = rf"(?:(?:0[1-9]|1[0-9]|2[0-8])/(?:Feb|{_MONTH[30]})|(?:29|30)/(?:{_MONTH[30]})|31/(?:{_MONTH[31]}))"
_HOUR = re.compile(rf"{_DAY}/(?:19|20)[0-9]{{2}}:(?:[01][0-9]|2[0-3])".encode())
_WITHIN_HOUR = re.compile(rb"(:[0-5][0-9]:[0-5][0-9] [+-](?:0[0-9]|1[0-3])[0-5][0-9])\] ")
_WITHIN_HOUR_BYTES = 14
_TIME_BYTES = 28
"""Size of a time, with the bracket and the space after it, in bytes."""
_FRONT = rf"^{_ADDRESS} {_WORD} {_WORD} \[$"
_VHOST_FRONT = rf"^[0-9A-Za-z._-]+:[0-9]{{1,5}} {_ADDRESS} {_WORD} {_WORD} \[$"
_STATUS = re.compile(rb" ([0-9]{3}) ")
_SUCCESS = re.compile(rb" (?:2..|304) ")
_ERROR = re.compile(rb" [45].. ")
_STATUS_BYTES = 5
_END = 1 << 30
"""Offset beyond the end of any field, in bytes. Arrow's own default is so large that it overflows for many rows."""
_ODD = r"[\\\x{FFFD}\x00-\x1f\x7f]"  # with url.UNSTORABLE, except surrogates, which UTF-8 cannot encode
_VIEWED = ("head", "request", "ts_us", "user_agent", "referrer", "status")


@dataclass(frozen=True, slots=True)
class Shape:
    """A format: the regular expressions for a line before its time, and after its status up to the next quote, whether
    referrer and user agent follow, and the place of the client's address among the words of the line."""

    front: str
    end: str
    has_user_agent: bool
    address: int = 0

    @property
    def fields(self) -> dict[str, pa.DataType]:
        """Return the columns between the quotes, in order."""
        before = {"head": pa.binary(), "request": TEXTS, "tail": pa.binary()}
        after = {"referrer": TEXTS, "gap": pa.binary(), "user_agent": TEXTS, "rest": pa.binary()}
        return before | after if self.has_user_agent else before


SHAPES: Mapping[str, Shape] = {
    "combined": Shape(_FRONT, r"^(?:[0-9]+|-) $", has_user_agent=True),
    "vhost-combined": Shape(_VHOST_FRONT, r"^(?:[0-9]+|-) $", has_user_agent=True, address=1),
    "common": Shape(_FRONT, r"^(?:[0-9]+|-)(?: .*)?$", has_user_agent=False),
}
"""Shapes by the name of the format. Logs of other formats are parsed line by line."""


def parse(block: bytes, shape: Shape, requests: RequestCache) -> Columns:
    """Parse a block of whole lines. Arrow releases the GIL for most of the time, so threads can parse in parallel."""
    split = _split(block, shape)
    if split is None:
        return Columns(count := block.count(b"\n"), VIEWS.empty_table(), {}, list(range(count)))
    fields, unsplit = split
    parsed, request = requests.parse(fields["request"].dictionary), fields["request"].indices
    status = pc.binary_slice(fields["tail"], 0, _STATUS_BYTES).dictionary_encode()
    fields |= {"ts_us": _times(fields["head"]), "status": map_values(status, _status, pa.int16())}
    is_success, is_error = (map_values(status, each, pa.bool_()) for each in (_is_success, _is_error))
    outcome = outcomes(parsed, request, is_success, is_error, reduce(pc.and_, _plain(fields, shape)))
    skipped, unparsed = skipped_and_unparsed(outcome)
    is_view = pc.equal(outcome, PAGE)
    for name in CHARACTERS_MAX.keys() & fields.keys():
        is_text_odd = is_odd(fields[name], _ODD, CHARACTERS_MAX[name])
        unparsed += pc.indices_nonzero(pc.and_(is_view, is_text_odd)).to_pylist()
        is_view = pc.and_not(is_view, is_text_odd)
    views = _views({name: fields[name].filter(is_view) for name in _VIEWED if name in fields}, parsed, shape)
    return Columns(len(outcome) + len(unsplit), views, skipped, sorted([*_places(unparsed, unsplit), *unsplit]))


def _split(block: bytes, shape: Shape) -> tuple[dict[str, pa.Array], list[int]] | None:
    """Return the fields of the lines, without the lines that have a different number of quotes, and the places of
    those lines. Return None if Arrow may split the block at other places than at its line ends."""
    if _has_long_line(block):
        return None
    lines = block.replace(b"\r\n", b"\n") if b"\r" in block else block
    if b"\r" in lines:  # a line end to Arrow, but not to any server
        return None
    if lines.startswith(BOM_UTF8):  # Arrow drops it; with more quotes the line is left to the parser of the format
        lines = b'"' * len(shape.fields) + lines
    return _fields(lines if _is_utf8(lines) else lines.decode("utf-8", "replace").encode(), shape)


def _has_long_line(block: bytes) -> bool:
    """Return whether a piece of the block has no line end, as is certain if a line is as long as two pieces."""
    pieces = range(0, len(block) - PIECE_BYTES, PIECE_BYTES)
    return any(block.find(b"\n", start, start + PIECE_BYTES) < 0 for start in pieces)


def _is_utf8(block: bytes) -> bool:
    if block.isascii():
        return True
    try:
        pa.array([block], pa.binary()).cast(pa.string())  # bytes.decode makes a copy of up to 4 times the size
    except pa.ArrowInvalid:
        return False
    return True


def _fields(block: bytes, shape: Shape) -> tuple[dict[str, pa.Array], list[int]]:
    """Return the fields of a block in UTF-8, and the places of the lines that have another number of fields.

    The block must be UTF-8, because Arrow decodes a line that it cannot split, and does not report a failure to decode.
    """
    unsplit = list[int]()

    def skip(line: csv.InvalidRow) -> str:
        unsplit.append(line.number - 1)
        return "skip"

    if not block:
        return {name: pa.array([], type) for name, type in shape.fields.items()}, []
    lines = csv.read_csv(
        pa.BufferReader(block),
        read_options=csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=[*shape.fields]),
        parse_options=csv.ParseOptions(
            delimiter='"', quote_char=False, ignore_empty_lines=False, invalid_row_handler=skip
        ),
        convert_options=csv.ConvertOptions(column_types=shape.fields, check_utf8=False),
    )
    return {name: one_array(lines[name]) for name in shape.fields}, unsplit


def _times(heads: pa.Array) -> pa.Array:
    """Return microseconds since 1970, null for a line with an unusual time. A block has few distinct hours, and few
    distinct times within an hour."""
    hours = pc.binary_slice(heads, -_TIME_BYTES, -_WITHIN_HOUR_BYTES).dictionary_encode()
    within = pc.binary_slice(heads, -_WITHIN_HOUR_BYTES).dictionary_encode()
    return pc.add(map_values(hours, _hour_us, pa.int64()), map_values(within, _within_hour_us, pa.int64()))


@lru_cache(4_096)
def _hour_us(text: bytes) -> int | None:
    return clf_us(f"{text.decode()}:00:00 +0000") if _HOUR.fullmatch(text) else None


@lru_cache(16_384)
def _within_hour_us(text: bytes) -> int | None:
    match = _WITHIN_HOUR.fullmatch(text)
    return clf_us(f"01/Jan/1970:00{match[1].decode()}") if match else None


def _status(text: bytes) -> int | None:
    match = _STATUS.fullmatch(text)
    return int(match[1]) if match else None


def _is_success(text: bytes) -> bool:
    return _SUCCESS.fullmatch(text) is not None


def _is_error(text: bytes) -> bool:
    return _ERROR.fullmatch(text) is not None


def _plain(fields: Mapping[str, pa.Array], shape: Shape) -> Iterator[pa.Array]:
    """Yield for one field after the other, except the request, whether it is plain in each line."""
    yield fields["ts_us"].is_valid()
    yield fields["status"].is_valid()
    front = pc.binary_slice(fields["head"], 0, -_TIME_BYTES)
    yield pc.match_substring_regex(front, shape.front)
    end = pc.binary_slice(fields["tail"], _STATUS_BYTES, _END)
    yield pc.match_substring_regex(end, shape.end)
    if shape.has_user_agent:
        yield pc.equal(fields["gap"], b" ")
        yield pc.or_(pc.equal(fields["rest"], b""), pc.starts_with(fields["rest"], " "))
    for name in CHARACTERS_MAX.keys() & fields.keys():  # a quote after a backslash may belong to the text
        yield pc.invert(pc.ends_with(fields[name].dictionary, "\\")).take(fields[name].indices)


def _views(fields: Mapping[str, pa.Array], parsed: pa.Table, shape: Shape) -> pa.Table:
    """Return the page views. A field that the format does not have is treated as not logged."""
    rows = len(fields["ts_us"])
    user_agent, referrer = (fields.get(name) or repeated(NOT_LOGGED, rows) for name in ("user_agent", "referrer"))
    columns = {
        **fields,
        "user_agent": replace(user_agent, [NOT_LOGGED], ""),
        "referrer": replace(referrer, ["", NOT_LOGGED], None),
        "address": _addresses(fields["head"], shape),
        "accept": repeated(None, rows),
    }
    return views_of(columns, fields["request"].indices, parsed)


def _addresses(heads: pa.Array, shape: Shape) -> pa.DictionaryArray:
    """Return the client's address of each line, which ends at the first space, or at the second one after a host.

    An address is repeated in the dictionary if it was logged with several users or hosts.
    """
    fronts = pc.binary_slice(heads, 0, -_TIME_BYTES).dictionary_encode()
    words = pc.split_pattern(fronts.dictionary.cast(pa.string()), " ", max_splits=shape.address + 1)
    addresses = pa.DictionaryArray.from_arrays(fronts.indices, pc.list_element(words, shape.address))
    return within_limit(replace(addresses, ["", NOT_LOGGED], None), ADDRESS_CHARACTERS_MAX)


def _places(rows: Sequence[int], unsplit: Sequence[int]) -> list[int]:
    """Return the places of rows among all lines, where `unsplit` are the places of the lines that are not rows."""
    before = [place - number for number, place in enumerate(unsplit)]
    return [row + bisect_right(before, row) for row in rows]
