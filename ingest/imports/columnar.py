"""Many lines of an access log at once, by columns: those that are as plain as nearly all are.

A line that this cannot take for sure, for an escape, a byte that is not UTF-8, an odd time or a field too many, is left
to the parser of its format, so that both together say of every line what that parser alone would.
"""

import re
from bisect import bisect_right
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from ingest.formats.fields import clf_us
from ingest.hits.hit import USER_AGENT_CHARACTERS_MAX
from ingest.hits.url import URL_CHARACTERS_MAX
from ingest.imports.dictionary import TEXTS, content, each, replaced, whole
from ingest.imports.request_cache import LEFT, METHOD, PAGE, SKIPPED, STATUS, Memory
from ingest.imports.rows import VIEWS

PIECE_BYTES = 8_192
"""A block with so much and no line end in it is left to the parser; a line up to twice as long may not be noticed."""
NOT_LOGGED = "-"

_WORD = r"[!#-Z\\-~]+"  # printable ASCII but for a quote and an opening bracket
_MONTH = {31: "Jan|Mar|May|Jul|Aug|Oct|Dec", 30: "Jan|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"}
_DAY = rf"(?:(?:0[1-9]|1[0-9]|2[0-8])/(?:Feb|{_MONTH[30]})|(?:29|30)/(?:{_MONTH[30]})|31/(?:{_MONTH[31]}))"
_HOUR = re.compile(rf"{_DAY}/(?:19|20)[0-9]{{2}}:(?:[01][0-9]|2[0-3])".encode())
_WITHIN_HOUR = re.compile(rb"(:[0-5][0-9]:[0-5][0-9] [+-](?:0[0-9]|1[0-3])[0-5][0-9])\] ")
_WITHIN_HOUR_BYTES = 14
_TIME_BYTES = 28
"""Of a time, with the bracket and the space after it."""
_FRONT = rf"^{_WORD} {_WORD} {_WORD} \[$"
_ANONYMOUS = " - - ["
"""How most lines go on after the address of who asked."""
_WORD_BYTES = bytes(set(range(0x21, 0x7F)) - {*b'"[\\'})
_VHOST_FRONT = rf"^[0-9A-Za-z._-]+:[0-9]{{1,5}} {_WORD} {_WORD} {_WORD} \[$"
_STATUS = re.compile(rb" ([0-9]{3}) ")
_ANSWERED = re.compile(rb" (?:2..|304) ")
_STATUS_BYTES = 5
_END = 1 << 30
"""Of a field, further than any. For want of one Arrow takes so high a number that many rows of it overflow."""
_ODD = r"[\\\x{FFFD}\x00-\x1f\x7f]"  # and what `path.UNSTORABLE` has, but surrogates, of which UTF-8 has none
_VIEWED = ("request", "ts_us", "user_agent", "referrer", "status")
_CHARACTERS_MAX = {"referrer": URL_CHARACTERS_MAX, "user_agent": USER_AGENT_CHARACTERS_MAX}


@dataclass(frozen=True, slots=True)
class Shape:
    """What a line is before its time, after its status, and whether referrer and user agent follow."""

    front: str
    end: str
    has_user_agent: bool

    @property
    def fields(self) -> dict[str, pa.DataType]:
        """What stands between the quotes, in order."""
        before = {"head": pa.binary(), "request": TEXTS, "tail": pa.binary()}
        after = {"referrer": TEXTS, "gap": pa.binary(), "user_agent": TEXTS, "rest": pa.binary()}
        return before | after if self.has_user_agent else before


SHAPES: Mapping[str, Shape] = {
    "combined": Shape(_FRONT, r"^(?:[0-9]+|-) $", has_user_agent=True),
    "vhost-combined": Shape(_VHOST_FRONT, r"^(?:[0-9]+|-) $", has_user_agent=True),
    "common": Shape(_FRONT, r"^(?:[0-9]+|-)(?: .*)?$", has_user_agent=False),
}
"""By the name of the format; another format's lines all go through its parser."""


@dataclass(frozen=True, slots=True)
class Columns:
    """What a block of lines says: how many they are, its page views (`page_views.VIEWS`), how many lines were skipped
    for each reason, and the places, from 0, of the lines that are left to the parser."""

    lines: int
    views: pa.Table
    skipped: Mapping[str, int]
    left: list[int]


def read(block: bytes, shape: Shape, memory: Memory) -> Columns:
    """The lines of a block, each of which ends with a line end. In threads: nearly all of it is Arrow's."""
    split = _split(block, shape)
    if split is None:
        return Columns(count := block.count(b"\n"), VIEWS.empty_table(), {}, list(range(count)))
    fields, unsplit = split
    said = memory.said_of(fields["request"].dictionary)
    status = pc.binary_slice(fields["tail"], 0, _STATUS_BYTES).dictionary_encode()
    fields |= {"ts_us": _times(fields["head"]), "status": each(status, _status, pa.int16())}
    odd = [name for name, most in _CHARACTERS_MAX.items() if name in fields and _may_be_odd(fields[name], most)]
    outcome = _outcomes(fields, said, each(status, _is_answered, pa.bool_()), shape, odd)
    counts = {found["values"]: found["counts"] for found in outcome.value_counts().to_pylist()}
    left: list[int] = pc.indices_nonzero(pc.equal(outcome, LEFT)).to_pylist() if LEFT in counts else []
    is_view = pc.equal(outcome, PAGE)
    for name in odd:
        is_odd = _is_odd(fields[name], _CHARACTERS_MAX[name])
        left += pc.indices_nonzero(pc.and_(is_view, is_odd)).to_pylist()
        is_view = pc.and_not(is_view, is_odd)
    views = _views({name: fields[name].filter(is_view) for name in _VIEWED if name in fields}, said)
    skipped: dict[str, int] = {name: counts[number] for name, number in SKIPPED.items() if number in counts}
    return Columns(len(outcome) + len(unsplit), views, skipped, sorted([*_places(left, unsplit), *unsplit]))


def _split(block: bytes, shape: Shape) -> tuple[dict[str, pa.Array], list[int]] | None:
    """The fields of the lines, and the places of those lines that have more or fewer quotes than plain ones, which are
    not among them. None if lines cannot be told apart for sure."""
    if _has_long_line(block):
        return None
    ends = block.replace(b"\r\n", b"\n") if b"\r" in block else block
    if b"\r" in ends:  # Arrow takes it for a line end; no server writes it
        return None
    if ends.startswith(BOM_UTF8):  # Arrow leaves it out: with more quotes its line is not a plain one
        ends = b'"' * len(shape.fields) + ends
    return _fields(ends if _is_utf8(ends) else ends.decode("utf-8", "replace").encode(), shape)


def _has_long_line(block: bytes) -> bool:
    """Whether a line may be of PIECE_BYTES or more; surely so if one is twice as long."""
    pieces = range(0, len(block) - PIECE_BYTES, PIECE_BYTES)
    return any(block.find(b"\n", start, start + PIECE_BYTES) < 0 for start in pieces)


def _is_utf8(block: bytes) -> bool:
    if block.isascii():
        return True
    try:
        pa.array([block], pa.binary()).cast(pa.string())  # without a copy four times as large, as Python's own has
    except pa.ArrowInvalid:
        return False
    return True


def _fields(block: bytes, shape: Shape) -> tuple[dict[str, pa.Array], list[int]]:
    """Of a block that is UTF-8: Arrow decodes a line that it cannot split, and tells nobody that it failed to."""
    unsplit = list[int]()

    def leave(line: csv.InvalidRow) -> str:
        unsplit.append(line.number - 1)
        return "skip"

    if not block:
        return {name: pa.array([], kind) for name, kind in shape.fields.items()}, []
    lines = csv.read_csv(
        pa.BufferReader(block),
        read_options=csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=[*shape.fields]),
        parse_options=csv.ParseOptions(
            delimiter='"', quote_char=False, ignore_empty_lines=False, invalid_row_handler=leave
        ),
        convert_options=csv.ConvertOptions(column_types=shape.fields, check_utf8=False),
    )
    return {name: whole(lines[name]) for name in shape.fields}, unsplit


def _times(heads: pa.Array) -> pa.Array:
    """Microseconds since 1970; null where a line does not have its time as most do. Hours are few, and so are the times
    within one."""
    hours = pc.binary_slice(heads, -_TIME_BYTES, -_WITHIN_HOUR_BYTES).dictionary_encode()
    within = pc.binary_slice(heads, -_WITHIN_HOUR_BYTES).dictionary_encode()
    return pc.add(each(hours, _hour_us, pa.int64()), each(within, _within_hour_us, pa.int64()))


@lru_cache(4_096)
def _hour_us(written: bytes) -> int | None:
    return clf_us(f"{written.decode()}:00:00 +0000") if _HOUR.fullmatch(written) else None


@lru_cache(16_384)
def _within_hour_us(written: bytes) -> int | None:
    found = _WITHIN_HOUR.fullmatch(written)
    return clf_us(f"01/Jan/1970:00{found[1].decode()}") if found else None


def _status(written: bytes) -> int | None:
    found = _STATUS.fullmatch(written)
    return int(found[1]) if found else None


def _is_answered(written: bytes) -> bool:
    return _ANSWERED.fullmatch(written) is not None


def _outcomes(
    fields: Mapping[str, pa.Array], said: pa.Table, is_answered: pa.Array, shape: Shape, odd: Sequence[str]
) -> pa.Array:
    """What comes of each line, whatever its user agent and referrer say; `odd` are those that may have odd texts."""
    answered = whole(said["outcome"]).take(fields["request"].indices)
    is_said = pc.or_(is_answered, pc.or_(pc.equal(answered, METHOD), pc.equal(answered, LEFT)))
    is_plain = pc.and_(fields["ts_us"].is_valid(), fields["status"].is_valid())
    for is_such in _plain(fields, shape, odd):
        is_plain = pc.and_(is_plain, is_such)
    return pc.if_else(is_plain, pc.if_else(is_said, answered, _outcome(STATUS)), _outcome(LEFT))


def _plain(fields: Mapping[str, pa.Array], shape: Shape, odd: Sequence[str]) -> Iterator[pa.Array]:
    """Whether each line is plain, but for its time, status and request, by one of its fields after the other."""
    front = pc.binary_slice(fields["head"], 0, -_TIME_BYTES)
    if not (shape.front == _FRONT and _are_all(front, _ANONYMOUS, _WORD_BYTES)):
        yield pc.match_substring_regex(front, shape.front)
    end = pc.binary_slice(fields["tail"], _STATUS_BYTES, _END)
    if not _are_all(end, " ", b"0123456789"):
        yield pc.match_substring_regex(end, shape.end)
    if shape.has_user_agent:
        yield pc.equal(fields["gap"], b" ")
        yield pc.or_(pc.equal(fields["rest"], b""), pc.starts_with(fields["rest"], " "))
    for name in odd:  # the quote after a backslash may be a part of the text
        yield pc.invert(pc.ends_with(fields[name].dictionary, "\\")).take(fields[name].indices)


def _are_all(texts: pa.Array, end: str, before: bytes) -> bool:
    """Whether each ends so, and is one or more of these bytes before; in a quarter of the time that a regular
    expression takes, of most logs."""
    return (
        len(texts) > 0
        and pc.all(pc.ends_with(texts, end)).as_py()
        and pc.min(pc.binary_length(texts)).as_py() > len(end)
        and len(content(texts).translate(None, before)) == len(texts) * len(end.encode().translate(None, before))
    )


def _may_be_odd(texts: pa.DictionaryArray, characters_max: int) -> bool:
    """False where no text is odd, which is known in a tenth of the time: of most logs all are ASCII without escapes."""
    found = content(texts.dictionary)
    numbers = pc.min_max(pa.Array.from_buffers(pa.uint8(), len(found), [None, pa.py_buffer(found)])).as_py()
    return len(found) > 0 and (
        numbers["min"] < ord(" ")
        or numbers["max"] > ord("~")
        or b"\\" in found
        or pc.max(pc.binary_length(texts.dictionary)).as_py() > characters_max
    )


def _is_odd(texts: pa.DictionaryArray, characters_max: int) -> pa.Array:
    """Whether each line's text is not as it stands, or over its limit."""
    is_long = pc.greater(pc.utf8_length(texts.dictionary), characters_max)
    return pc.or_(pc.match_substring_regex(texts.dictionary, _ODD), is_long).take(texts.indices)


def _views(fields: Mapping[str, pa.Array], said: pa.Table) -> pa.Table:
    """Page views; what a format does not have is as what was not logged."""
    request = fields["request"].indices
    not_logged = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), len(request)), [NOT_LOGGED])
    columns = {
        **fields,
        "path": _of_requests(said["path"], request),
        "user_agent": replaced(fields.get("user_agent", not_logged), [NOT_LOGGED], ""),
        "referrer": replaced(fields.get("referrer", not_logged), ["", NOT_LOGGED], None),
        "utm_source": _of_requests(said["utm_source"], request),
    }
    return pa.table([columns[name] for name in VIEWS.names], schema=VIEWS)


def _of_requests(texts: pa.ChunkedArray, requests: pa.Array) -> pa.DictionaryArray:
    found = whole(texts).dictionary_encode()
    return pa.DictionaryArray.from_arrays(found.indices.take(requests), found.dictionary)


def _outcome(number: int) -> pa.Scalar:
    return pa.scalar(number, pa.uint8())


def _places(rows: Sequence[int], unsplit: Sequence[int]) -> list[int]:
    """The places of lines among all, given those among the others than `unsplit`."""
    before = [place - number for number, place in enumerate(unsplit)]
    return [row + bisect_right(before, row) for row in rows]
