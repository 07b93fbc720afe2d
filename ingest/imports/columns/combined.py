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
from ingest.imports.columns.asked import ASKED
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
from ingest.imports.columns.separators import Array, pieces_of, positions
from ingest.imports.dictionary import TEXTS, map_values, one_array, repeated, replace, take
from ingest.imports.request_cache import RequestCache

PIECE_BYTES = 1024 * 1024
"""Size of the pieces into which a block is split, in bytes. The separators and texts of a piece fit into the caches of
a core."""
NOT_LOGGED = "-"
_NEWLINE, _RETURN, _SPACE, _DASH, _ZERO = b"\n\r -0"

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
_ODD = r"[\\\x{FFFD}\x00-\x1f\x7f]"  # with url.UNSTORABLE, except surrogates, which UTF-8 cannot encode
_NOT_LOGGED = ("accept", "country", "language")
_VIEWED = ("address", "ts_us", "user_agent", "referrer", "status")


@dataclass(frozen=True, slots=True)
class Shape:
    """A format: the regular expression for a line before its time, whether referrer and user agent follow the size, and
    the place of the client's address among the words of the line."""

    front: str
    has_user_agent: bool
    address: int = 0

    @property
    def quotes(self) -> int:
        """Return the number of quotes of a line."""
        return 6 if self.has_user_agent else 2


SHAPES: Mapping[str, Shape] = {
    "combined": Shape(_FRONT, has_user_agent=True),
    "vhost-combined": Shape(_VHOST_FRONT, has_user_agent=True, address=1),
    "common": Shape(_FRONT, has_user_agent=False),
}
"""Shapes by the name of the format. JSON logs are parsed by `columns.json_lines`, and all other logs line by line."""


def parse(block: bytes, shape: Shape, requests: RequestCache) -> ParsedLines:
    """Parse a block of whole lines. Arrow releases the GIL for most of the time, so threads can parse in parallel."""
    fields, is_split = _split(block, shape)
    parsed, request = requests.parse(fields["request"].dictionary), fields["request"].indices
    fields |= {"ts_us": _times(fields), "status": map_values(fields["status"], _status, pa.int16())}
    is_front = pc.match_substring_regex(fields["front"].dictionary, shape.front)
    outcome = outcomes(parsed, request, fields["status"], reduce(pc.and_, _plain(fields, is_front)))
    for name in CHARACTERS_MAX.keys() & fields.keys():
        is_left = is_odd(fields[name], _ODD, CHARACTERS_MAX[name])
        is_left = is_left if name == "user_agent" else pc.and_(is_left, is_hit(outcome))
        outcome = pc.if_else(is_left, LEFT, outcome)
    skipped, unparsed = skipped_and_unparsed(outcome)
    not_logged = {name: repeated(NOT_LOGGED, len(outcome)) for name in CHARACTERS_MAX}
    fields = {**not_logged, "cache": pa.nulls(len(outcome), TEXTS), **fields} | {
        "address": _addresses(fields["front"], is_front, shape),
        "kind": take(parsed["kind"], request),
        "ms_below": pa.nulls(len(outcome), pa.int64()),
    }
    fields["user_agent"] = replace(fields["user_agent"], [NOT_LOGGED], "")
    fields["referrer"] = replace(fields["referrer"], ["", NOT_LOGGED], None)
    is_view, is_counted = is_hit(outcome), pc.not_equal(outcome, LEFT)
    request = request.filter(is_view)
    viewed = {name: fields[name].filter(is_view) for name in _VIEWED}
    views = hits_of(viewed | dict.fromkeys(_NOT_LOGGED, pa.nulls(len(request), TEXTS)), request, parsed)
    asked = pa.table([fields[name] for name in ASKED.names], schema=ASKED).filter(is_counted)
    left = np.concatenate([np.flatnonzero(~is_split), np.flatnonzero(is_split)[unparsed]])
    return ParsedLines(len(is_split), views, skipped, sorted(left.tolist()), asked)


def _split(block: bytes, shape: Shape) -> tuple[dict[str, pa.Array], Array]:
    """Return the fields of the lines that can be split, and for each line whether it can be split.

    Another number of quotes, too many bytes, an unusual size, or a text around the user agent prevents it.
    """
    pieces = [_split_piece(piece, shape) for piece in pieces_of(block, PIECE_BYTES)]
    columns = {name: pa.chunked_array([fields[name] for fields, _ in pieces]) for name in pieces[0][0]}
    fields = {name: one_array(each) if name == "bytes" else _encoded(each) for name, each in columns.items()}
    return fields, np.concatenate([is_split for _, is_split in pieces])


def _split_piece(block: memoryview, shape: Shape) -> tuple[dict[str, pa.Array], Array]:
    characters, separators = np.frombuffer(block, np.uint8), positions(block, b'"\n')
    ends = np.flatnonzero(characters[separators] == _NEWLINE)
    is_split = np.diff(ends, prepend=-1) == shape.quotes + 1
    sizes = np.diff(separators[ends], prepend=-1)
    is_split &= sizes <= LINE_BYTES_MAX
    places = separators[ends[is_split] + np.arange(-shape.quotes, 1)[:, None]]  # of the quotes and the end of each line
    starts = places[-1] + 1 - sizes[is_split]
    is_plain = (places[0] - starts >= _TIME_BYTES) & (places[2] - places[1] > _STATUS_BYTES)
    size, is_size = _sizes(characters, places, shape)
    is_plain &= is_size
    if shape.has_user_agent:  # a space before the user agent, and nothing else
        is_plain &= (places[4] - places[3] == 2) & (characters[places[3] + 1] == _SPACE)
        is_plain &= _is_end(characters, places[5] + 1, places[6])
    is_split[is_split] = is_plain
    fields = _fields(block, starts[is_plain], places[:, is_plain], shape)
    return fields | {"bytes": size.filter(pa.array(is_plain))}, is_split


def _sizes(characters: Array, places: Array, shape: Shape) -> tuple[pa.Array, Array]:
    """Return the size of each line's response, 0 if it is `-`, and whether it is plain."""
    start = np.minimum(places[1] + 1 + _STATUS_BYTES, places[2])
    size, end = np.zeros(len(start), np.int64), start.copy()
    for _ in range(SIZE_DIGITS_MAX):
        digit = characters[end] - _ZERO
        if not np.any(is_digit := digit < 10):
            break
        size = np.where(is_digit, size * 10 + digit, size)
        end += is_digit
    end += characters[start] == _DASH
    is_known = end > start
    if shape.has_user_agent:
        is_end = (characters[end] == _SPACE) & (places[2] - end == 1)
    else:
        is_end = _is_end(characters, end, places[2])
    return pa.array(size), is_end & is_known


def _is_end(characters: Array, place: Array, line_end: Array) -> Array:
    """Return whether the line ends at a place, or a space is there, after which other fields may follow."""
    after = characters[place]
    is_end: Array = (after == _NEWLINE) | (after == _SPACE) | ((after == _RETURN) & (line_end - place == 1))
    return is_end


def _fields(block: memoryview, starts: Array, places: Array, shape: Shape) -> dict[str, pa.Array]:
    """Return the fields of lines as columns. `starts` has the start of each line, `places` its quotes and end."""
    times = places[0] - _TIME_BYTES
    texts = {"front": (starts, times), "request": (places[0] + 1, places[1])}
    if shape.has_user_agent:
        texts |= {"referrer": (places[2] + 1, places[3]), "user_agent": (places[4] + 1, places[5])}
    return {
        **{name: _texts(block, *bounds) for name, bounds in texts.items()},
        "hour": _fixed(block, times, _TIME_BYTES - _WITHIN_HOUR_BYTES),
        "within_hour": _fixed(block, places[0] - _WITHIN_HOUR_BYTES, _WITHIN_HOUR_BYTES),
        "status": _fixed(block, places[1] + 1, _STATUS_BYTES),
    }


def _texts(block: memoryview, starts: Array, ends: Array) -> pa.Array:
    """Return the texts between starts and ends, which do not overlap."""
    bounds = np.stack([starts, ends], axis=1).astype(np.int32)
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(block)]
    texts = pa.Array.from_buffers(pa.binary(), max(0, bounds.size - 1), buffers)
    return texts.take(pa.array(np.arange(0, bounds.size, 2)))


def _fixed(block: memoryview, starts: Array, size: int) -> pa.Array:
    texts = np.ndarray(max(0, len(block) - size + 1), f"V{size}", block, strides=(1,))[starts]
    return pa.Array.from_buffers(pa.binary(size), len(texts), [None, pa.py_buffer(texts)])


def _encoded(texts: pa.ChunkedArray) -> pa.DictionaryArray:
    """Return the texts. In binary columns of variable size, U+FFFD replaces bytes that are not UTF-8."""
    encoded = one_array(texts.dictionary_encode())
    if texts.type != pa.binary():
        return encoded
    try:
        dictionary = encoded.dictionary.cast(pa.string())
    except pa.ArrowInvalid:
        decoded = [text.decode("utf-8", "replace") for text in encoded.dictionary.to_pylist()]
        dictionary = pa.array(decoded, pa.string())
    return pa.DictionaryArray.from_arrays(encoded.indices, dictionary)


def _times(fields: Mapping[str, pa.Array]) -> pa.Array:
    """Return microseconds since 1970, null for a line with an unusual time.

    Hours, and times within an hour, are converted separately, because a block has few distinct values of each.
    """
    hours = map_values(fields["hour"], _hour_us, pa.int64())
    return pc.add(hours, map_values(fields["within_hour"], _within_hour_us, pa.int64()))


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


def _plain(fields: Mapping[str, pa.Array], is_front: pa.Array) -> Iterator[pa.Array]:
    """Yield for each field except the request whether it is plain in each line. `is_front` has one value a front."""
    yield fields["ts_us"].is_valid()
    yield fields["status"].is_valid()
    yield is_front.take(fields["front"].indices)
    for name in CHARACTERS_MAX.keys() & fields.keys():  # a quote after a backslash may belong to the text
        yield pc.invert(pc.ends_with(fields[name].dictionary, "\\")).take(fields[name].indices)


def _addresses(fronts: pa.DictionaryArray, is_plain: pa.Array, shape: Shape) -> pa.DictionaryArray:
    """Return the client's address of each line, which ends at the first space, or at the second one after a host.

    The address of an odd text is null. One that has several users or hosts is repeated in the dictionary.
    """
    words = pc.split_pattern(pc.if_else(is_plain, fronts.dictionary, "  "), " ", max_splits=shape.address + 1)
    addresses = pa.DictionaryArray.from_arrays(fronts.indices, pc.list_element(words, shape.address))
    return within_limit(replace(addresses, ["", NOT_LOGGED], None), ADDRESS_CHARACTERS_MAX)
