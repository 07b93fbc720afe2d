"""Parser of whole blocks of a JSON log by columns.

Lines are decoded by the decoder of their format (`ingest.formats.json_products`), many in one call, and each distinct
value is processed once. The parser of the format (`ingest.formats.json_lines`) is the reference. It decodes the lines
that are not plain: those that are not UTF-8, too long, or not one JSON object from the first byte to the last.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingest.errors import InvalidLine
from ingest.formats.fields import storable
from ingest.formats.json_lines import JsonParser
from ingest.formats.json_products import RequestColumns
from ingest.formats.page_filter import ERRORS, Skip
from ingest.formats.request import LINE_BYTES_MAX
from ingest.imports.columns import times
from ingest.imports.columns.page_views import (
    CHARACTERS_MAX,
    EVIDENCE_CHARACTERS_MAX,
    LEFT,
    ParsedLines,
    hits_of,
    is_hit,
    is_odd,
    outcomes,
    skipped_and_unparsed,
    take,
    within_limit,
)
from ingest.imports.columns.request_counts import ASKED, cache_of, count, ms_below
from ingest.imports.columns.separators import Array, positions
from ingest.imports.dictionary import replace
from ingest.imports.request_cache import RequestCache

PIECE_LINES = 128
"""Number of lines that are decoded in one call. If one of them is not plain, all of them are decoded one by one.
Fewer lines are faster than all lines of a block, because their decoded fields remain in the caches of the core."""
_ODD = r"[\x00-\x1f\x7f]"  # with url.UNSTORABLE, except surrogates, which Arrow refuses
_OPEN, _CLOSE, _RETURN = b"{}\r"
_NOT_A_REQUEST: Skip = "not_a_request"


def parse(block: bytes, parser: JsonParser, requests: RequestCache) -> ParsedLines:
    """Parse a block of whole lines. Decoding holds the GIL; most of the other work releases it."""
    ends = positions(block, b"\n")
    is_request, refused = np.ones(len(ends), bool), list[int]()
    asked = RequestColumns(*([] for _ in RequestColumns._fields))
    for first, piece, is_plain in _pieces(block, ends):
        rows = _decode_plain(piece, min(PIECE_LINES, len(ends) - first), parser) if is_plain else None
        if rows is None:
            rows = _decode_lines(piece, first, parser, is_request, refused)
        if parser.has_memory:
            rows = _without_repeated(rows, first, parser, is_request)
        asked.extend(parser.product.columns(rows))
    views, skipped, unparsed, counts = _hits(asked, requests)
    skipped[_NOT_A_REQUEST] = len(ends) - len(asked.times) - len(refused)
    unparsed = sorted([*refused, *np.flatnonzero(is_request)[unparsed].tolist()])
    skipped = {reason: number for reason, number in skipped.items() if number}
    return ParsedLines(len(ends), views, skipped, unparsed, counts)


def _pieces(block: bytes, ends: Array) -> Iterator[tuple[int, bytes, bool]]:
    """Yield the pieces of a block: the number of lines before the piece, its lines, and whether all lines are plain."""
    starts = np.concatenate([[0], ends[:-1] + 1])
    is_plain = _are_plain(np.frombuffer(block, np.uint8), starts, ends)
    for first in range(0, len(ends), PIECE_LINES):
        piece = block[starts[first] : ends[first : first + PIECE_LINES][-1] + 1]
        yield first, piece, bool(is_plain[first : first + PIECE_LINES].all())


def _are_plain(block: Array, starts: Array, ends: Array) -> Array:
    """Return whether each line begins with `{`, ends with `}` and is short enough to be parsed.

    No JSON text contains `}`, a line end and `{` in sequence: an object cannot follow the end of a value, and a string
    cannot contain a line end. If as many objects are decoded from such lines as there are lines, each line is one
    object.
    """
    last = block[ends - 1]
    if (is_return := last == _RETURN).any():
        last = np.where(is_return, block[ends - 2], last)
    plain: Array = (block[starts] == _OPEN) & (last == _CLOSE) & (ends - starts <= LINE_BYTES_MAX)
    return plain


def _decode_plain(piece: bytes, lines: int, parser: JsonParser) -> list[Any] | None:
    """Return the fields of lines that all record requests; None if a line may be anything else."""
    if not piece.isascii() and not _is_utf8(piece):
        return None
    product = parser.product
    try:
        rows: list[Any] = product.request.decode_lines(piece)
    except (msgspec.MsgspecError, RecursionError):
        return None
    is_each_a_request = all(map(product.is_request, set(map(product.kind, rows))))
    return rows if is_each_a_request and len(rows) == lines else None


def _decode_lines(piece: bytes, first: int, parser: JsonParser, is_request: Array, refused: list[int]) -> list[Any]:
    """Return the fields of the lines that record requests.

    `first` is the place of the first line. `is_request` is cleared at the places of the other lines; `refused` gets the
    places of the lines that the parser refuses.
    """
    rows = []
    for place, line in enumerate(piece.split(b"\n")[:-1], start=first):
        try:
            fields = parser.fields(line[:LINE_BYTES_MAX])
        except InvalidLine:
            refused.append(place)
            fields = None
        if fields is None:
            is_request[place] = False
        else:
            rows.append(fields)
    return rows


def _without_repeated(rows: list[Any], first: int, parser: JsonParser, is_request: Array) -> list[Any]:
    """Return the fields of the lines that do not repeat a request, and clear `is_request` for the others."""
    is_new = [not parser.is_repeated(row) for row in rows]
    if all(is_new):
        return rows
    places = np.flatnonzero(is_request[first : first + PIECE_LINES]) + first
    is_request[places[~np.array(is_new)]] = False
    return [row for row, new in zip(rows, is_new, strict=True) if new]


def _is_utf8(piece: bytes) -> bool:
    try:
        piece.decode()
    except UnicodeDecodeError:
        return False
    return True


def _hits(asked: RequestColumns, requests: RequestCache) -> tuple[pa.Table, dict[str, int], list[int], pa.Table]:
    """Return the hits, the number of skipped lines by reason, the rows that are left to the parser, and the counts of
    the other requests."""
    ts_us, status = times.microseconds(asked.times), _statuses(asked.statuses)
    line = pc.binary_join_element_wise(_texts(asked.methods), _texts(asked.targets), "HTTP/1.1", " ")
    request = line.dictionary_encode()
    parsed = requests.parse(request.dictionary)
    is_success = pc.or_(pc.and_(pc.greater_equal(status, 200), pc.less(status, 300)), pc.equal(status, 304))
    is_error = pc.and_(pc.greater_equal(status, ERRORS.start), pc.less(status, ERRORS.stop))
    outcome = outcomes(parsed, request.indices, is_success, is_error, ts_us.is_valid())
    user_agent = _texts(asked.user_agents).dictionary_encode()
    outcome = pc.if_else(is_odd(user_agent, _ODD, CHARACTERS_MAX["user_agent"]), LEFT, outcome)
    skipped, unparsed = skipped_and_unparsed(outcome)
    rows = pc.indices_nonzero(is_hit(outcome))
    columns = {"ts_us": ts_us.take(rows), "status": status.take(rows), "request": request.indices.take(rows)}
    columns |= _view_texts(asked, rows.to_pylist())
    is_view_odd = _any_odd(columns)
    if pc.any(is_view_odd).as_py():
        unparsed += rows.filter(is_view_odd).to_pylist()
        columns = {name: column.filter(pc.invert(is_view_odd)) for name, column in columns.items()}
    is_counted = np.ones(len(outcome), bool)
    is_counted[unparsed] = False
    kind = take(parsed["kind"], request.indices)
    known = {"ts_us": ts_us, "status": status, "kind": kind, "user_agent": user_agent}
    counts = count(_asked(asked, known).filter(pa.array(is_counted)))
    return hits_of(columns, columns["request"], parsed), skipped, unparsed, counts


def _asked(asked: RequestColumns, known: dict[str, pa.Array]) -> pa.Table:
    """Return requests as `request_counts.ASKED`."""
    columns = {
        **known,
        "cache": pa.array([cache_of(each) if each else None for each in asked.caches], pa.string()).dictionary_encode(),
        "ms_below": pa.array([ms_below(each) for each in asked.times_ms], pa.int64()),
        "bytes": pa.array(asked.sizes, pa.int64()),
    }
    return pa.table([columns[name] for name in ASKED.names], schema=ASKED)


def _view_texts(asked: RequestColumns, rows: Sequence[int]) -> dict[str, pa.DictionaryArray]:
    """Return the texts of these rows, null where they are not logged, except of the user agent."""
    texts = {
        "referrer": asked.referrers,
        "user_agent": asked.user_agents,
        "address": asked.addresses,
        "accept": asked.accepts,
    }
    columns = {name: _texts([column[row] for row in rows]).dictionary_encode() for name, column in texts.items()}
    for name in columns.keys() - {"user_agent"}:
        columns[name] = replace(columns[name], [""], None)
    for name, characters_max in EVIDENCE_CHARACTERS_MAX.items():
        columns[name] = within_limit(columns[name], characters_max)
    return columns


def _any_odd(columns: dict[str, pa.Array]) -> pa.Array:
    """Return whether a text of a page view has a control character, or makes its line malformed by its length."""
    is_any = pc.is_null(columns["ts_us"])
    for name, characters_max in (CHARACTERS_MAX | EVIDENCE_CHARACTERS_MAX).items():
        is_any = pc.or_(is_any, pc.fill_null(is_odd(columns[name], _ODD, characters_max), fill_value=False))
    return is_any


def _texts(texts: Sequence[str]) -> pa.Array:
    try:
        return pa.array(texts, pa.string())
    except UnicodeEncodeError:  # a lone surrogate, which the parser of the format replaces
        return pa.array(list(map(storable, texts)), pa.string())


def _statuses(statuses: Sequence[int]) -> pa.Array:
    """Return the statuses as 16-bit integers. If one of them does not fit, each status outside 0 to 999 becomes 0;
    neither is the status of a page view."""
    try:
        return pa.array(statuses, pa.int16())
    except (pa.ArrowInvalid, OverflowError):
        return pa.array([status if 0 <= status < 1_000 else 0 for status in statuses], pa.int16())
