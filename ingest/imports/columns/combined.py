"""Parser of whole blocks by columns, for the formats of the combined family.

Lines are split into columns at their quotes, whose positions NumPy finds, and each distinct value is parsed once. The
parser of the format (`ingest.formats.clf`) is the reference. This module parses plain lines, which are nearly all lines
of a log, and leaves any other line to the reference: a line with an escape, a byte that is not UTF-8, an unusual time,
or another number of quotes.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingest.formats.fields import SIZE_DIGITS_MAX, clf_us
from ingest.formats.request import LINE_BYTES_MAX
from ingest.hits.evidence import ADDRESS_CHARACTERS_MAX
from ingest.imports.columns.page_views import (
    CHARACTERS_MAX,
    LEFT,
    ParsedLines,
    hits_of,
    is_hit,
    is_odd,
    outcomes,
    skipped_and_unparsed,
    within_limit,
)
from ingest.imports.columns.request_counts import ASKED, count
from ingest.imports.columns.separators import Array, positions
from ingest.imports.dictionary import TEXTS, map_values, one_array, repeated, replace, take
from ingest.imports.request_cache import RequestCache

PIECE_BYTES = 1024 * 1024
"""Size of the pieces into which a block is split, in bytes. The separators and texts of a piece fit into the caches of
a core."""
NOT_LOGGED = "-"
_NEWLINE, _RETURN, _SPACE = b"\n\r "

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
_STATUS_BYTES = 5
_END = 1 << 30
"""Offset beyond the end of any field, in bytes. Arrow's own default is so large that it overflows for many rows."""
_ODD = r"[\\\x{FFFD}\x00-\x1f\x7f]"  # with url.UNSTORABLE, except surrogates, which UTF-8 cannot encode
_FIELDS_TO_SIZE = {"head": 0, "request": 1, "tail": 2}
_FIELDS = _FIELDS_TO_SIZE | {"referrer": 3, "user_agent": 5}
_ENCODED = {"request", "referrer", "user_agent"}
"""Fields of which a block has far fewer distinct texts than lines."""
_COUNTED = ("tail", "ts_us", "user_agent", "kind", "status")
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
    def quotes(self) -> int:
        """Return the number of quotes of a line."""
        return 6 if self.has_user_agent else 2

    @property
    def fields(self) -> dict[str, int]:
        """Return the number of quotes before each field."""
        return _FIELDS if self.has_user_agent else _FIELDS_TO_SIZE


SHAPES: Mapping[str, Shape] = {
    "combined": Shape(_FRONT, r"^(?:[0-9]+|-) $", has_user_agent=True),
    "vhost-combined": Shape(_VHOST_FRONT, r"^(?:[0-9]+|-) $", has_user_agent=True, address=1),
    "common": Shape(_FRONT, r"^(?:[0-9]+|-)(?: .*)?\r?$", has_user_agent=False),
}
"""Shapes by the name of the format. JSON logs are parsed by `columns.json_lines`, and all other logs line by line."""


def parse(block: bytes, shape: Shape, requests: RequestCache) -> ParsedLines:
    """Parse a block of whole lines. Arrow releases the GIL for most of the time, so threads can parse in parallel."""
    fields, is_split = _split(block, shape)
    parsed, request = requests.parse(fields["request"].dictionary), fields["request"].indices
    status = pc.binary_slice(fields["tail"], 0, _STATUS_BYTES).dictionary_encode()
    fields |= {"ts_us": _times(fields["head"]), "status": map_values(status, _status, pa.int16())}
    outcome = outcomes(parsed, request, fields["status"], reduce(pc.and_, _plain(fields, shape)))
    for name in CHARACTERS_MAX.keys() & fields.keys():
        is_left = is_odd(fields[name], _ODD, CHARACTERS_MAX[name])
        is_left = is_left if name == "user_agent" else pc.and_(is_left, is_hit(outcome))
        outcome = pc.if_else(is_left, LEFT, outcome)
    skipped, unparsed = skipped_and_unparsed(outcome)
    is_view = is_hit(outcome)
    views = _hits({name: fields[name].filter(is_view) for name in _VIEWED if name in fields}, parsed, shape)
    left = np.concatenate([np.flatnonzero(~is_split), np.flatnonzero(is_split)[unparsed]])
    fields |= {"kind": take(parsed["kind"], request)}
    counts = count(_asked(fields, pc.not_equal(outcome, LEFT), shape))
    return ParsedLines(len(is_split), views, skipped, sorted(left.tolist()), counts)


def _asked(fields: Mapping[str, pa.Array], is_counted: pa.Array, shape: Shape) -> pa.Table:
    """Return the requests of the counted lines (`request_counts.ASKED`), which are plain."""
    plain = {name: fields[name].filter(is_counted) for name in _COUNTED if name in fields}
    lines = len(plain["tail"])
    size = pc.binary_slice(plain["tail"], _STATUS_BYTES, -1 if shape.has_user_agent else _END).cast(pa.string())
    if not shape.has_user_agent:  # other fields may follow
        size = pc.utf8_rtrim(pc.replace_substring_regex(size, " .*", ""), "\r")
    is_known = pc.and_(pc.not_equal(size, NOT_LOGGED), pc.less_equal(pc.binary_length(size), SIZE_DIGITS_MAX))
    columns = {
        **plain,
        "user_agent": replace(plain.get("user_agent") or repeated("", lines), [NOT_LOGGED], ""),
        "cache": pa.nulls(lines, TEXTS),
        "ms_below": pa.nulls(lines, pa.int64()),
        "bytes": pc.if_else(is_known, size, None).cast(pa.int64()),
    }
    return pa.table([columns[name] for name in ASKED.names], schema=ASKED)


def _split(block: bytes, shape: Shape) -> tuple[dict[str, pa.Array], Array]:
    """Return the fields of the lines that can be split, and for each line whether it can be split.

    A line cannot be split if it has another number of quotes, is too long, or has an unusual text around the user
    agent.
    """
    pieces = [_split_piece(piece, shape) for piece in _pieces(block)]
    texts = {name: pa.chunked_array([fields[name] for fields, _ in pieces], pa.binary()) for name in shape.fields}
    fields = {name: _encoded(text) if name in _ENCODED else one_array(text) for name, text in texts.items()}
    return fields, np.concatenate([is_split for _, is_split in pieces])


def _pieces(block: bytes) -> Iterator[memoryview]:
    """Yield the lines of a block in pieces of PIECE_BYTES, of which one may be longer by a line."""
    start, end = 0, -1
    while end < len(block):
        end = block.find(b"\n", start + PIECE_BYTES) + 1 or len(block)
        yield memoryview(block)[start:end]
        start = end


def _split_piece(block: memoryview, shape: Shape) -> tuple[dict[str, pa.Array], Array]:
    characters, separators = np.frombuffer(block, np.uint8), positions(block, b'"\n')
    ends = np.flatnonzero(characters[separators] == _NEWLINE)
    is_split = np.diff(ends, prepend=-1) == shape.quotes + 1
    is_split &= np.diff(separators[ends], prepend=-1) <= LINE_BYTES_MAX
    first = ends[is_split] - shape.quotes
    if shape.has_user_agent:
        is_split[is_split] = is_plain = _is_user_agent_plain(characters, separators, first)
        first = first[is_plain]
    return _fields(block, separators, first, shape), is_split


def _is_user_agent_plain(characters: Array, separators: Array, first: Array) -> Array:
    """Return whether a space is before the quoted user agent of each line, and after it the line end or a space.

    `first` are the places of the lines' first quotes among the separators.
    """
    before, begin, end, line_end = (separators[first + place] for place in range(3, 7))
    is_gap = (begin - before == 2) & (characters[before + 1] == _SPACE)
    after = characters[end + 1]
    is_end = (after == _NEWLINE) | (after == _SPACE) | ((after == _RETURN) & (line_end - end == 2))
    plain: Array = is_gap & is_end
    return plain


def _fields(block: memoryview, separators: Array, first: Array, shape: Shape) -> dict[str, pa.Array]:
    """Return the texts between the separators as columns. `first`: see `_is_user_agent_plain`."""
    bounds = np.zeros(2 * len(separators) + 1, np.int32)
    bounds[1::2], bounds[2::2] = separators, separators + 1
    texts = pa.Array.from_buffers(pa.binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), pa.py_buffer(block)])
    return {name: texts.take(pa.array(2 * (first + place))) for name, place in shape.fields.items()}


def _encoded(texts: pa.ChunkedArray) -> pa.DictionaryArray:
    """Return the texts with U+FFFD in place of bytes that are not UTF-8."""
    encoded = one_array(texts.dictionary_encode())
    try:
        dictionary = encoded.dictionary.cast(pa.string())
    except pa.ArrowInvalid:
        decoded = [text.decode("utf-8", "replace") for text in encoded.dictionary.to_pylist()]
        dictionary = pa.array(decoded, pa.string())
    return pa.DictionaryArray.from_arrays(encoded.indices, dictionary)


def _times(heads: pa.Array) -> pa.Array:
    """Return microseconds since 1970, null for a line with an unusual time.

    Hours, and times within an hour, are converted separately, because a block has few distinct values of each.
    """
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


def _plain(fields: Mapping[str, pa.Array], shape: Shape) -> Iterator[pa.Array]:
    """Yield a column for each field except the request: whether the field is plain in each line."""
    yield fields["ts_us"].is_valid()
    yield fields["status"].is_valid()
    front = pc.binary_slice(fields["head"], 0, -_TIME_BYTES)
    yield pc.match_substring_regex(front, shape.front)
    end = pc.binary_slice(fields["tail"], _STATUS_BYTES, _END)
    yield pc.match_substring_regex(end, shape.end)
    for name in CHARACTERS_MAX.keys() & fields.keys():  # a quote after a backslash may belong to the text
        yield pc.invert(pc.ends_with(fields[name].dictionary, "\\")).take(fields[name].indices)


def _hits(fields: Mapping[str, pa.Array], parsed: pa.Table, shape: Shape) -> pa.Table:
    """Return the hits. A field that the format does not have is treated as not logged."""
    rows = len(fields["ts_us"])
    user_agent, referrer = (fields.get(name) or repeated(NOT_LOGGED, rows) for name in ("user_agent", "referrer"))
    columns = {
        **fields,
        "user_agent": replace(user_agent, [NOT_LOGGED], ""),
        "referrer": replace(referrer, ["", NOT_LOGGED], None),
        "address": _addresses(fields["head"], shape),
        "accept": repeated(None, rows),
    }
    return hits_of(columns, fields["request"].indices, parsed)


def _addresses(heads: pa.Array, shape: Shape) -> pa.DictionaryArray:
    """Return the client's address of each line, which ends at the first space, or at the second one after a host.

    An address is repeated in the dictionary if it was logged with several users or hosts.
    """
    fronts = pc.binary_slice(heads, 0, -_TIME_BYTES).dictionary_encode()
    words = pc.split_pattern(fronts.dictionary.cast(pa.string()), " ", max_splits=shape.address + 1)
    addresses = pa.DictionaryArray.from_arrays(fronts.indices, pc.list_element(words, shape.address))
    return within_limit(replace(addresses, ["", NOT_LOGGED], None), ADDRESS_CHARACTERS_MAX)
