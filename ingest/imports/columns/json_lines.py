"""Parser of whole blocks of a JSON log by columns.

Lines are decoded by the parser of their format (`ingest.formats.json_lines`), which is the reference, and each distinct
value is processed once. The lines with an odd text are left to the parser.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingest.errors import InvalidLine
from ingest.formats.fields import storable, time_us
from ingest.formats.json_lines import JsonParser
from ingest.formats.json_products import RequestColumns, Time
from ingest.formats.page_filter import ERRORS, Skip
from ingest.formats.request import LINE_BYTES_MAX
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
from ingest.imports.dictionary import replace
from ingest.imports.request_cache import RequestCache

_ODD = r"[\x00-\x1f\x7f]"  # with url.UNSTORABLE, except surrogates, which Arrow refuses
_NOT_A_REQUEST: Skip = "not_a_request"


def parse(block: bytes, parser: JsonParser, requests: RequestCache) -> ParsedLines:
    """Parse a block of whole lines. Decoding holds the GIL; most of the other work releases it."""
    lines = block.split(b"\n")[:-1]
    rows, places, refused = list[Any](), list[int](), list[int]()
    for place, line in enumerate(lines):
        try:
            fields = parser.fields(line[:LINE_BYTES_MAX])
        except InvalidLine:
            refused.append(place)
            continue
        if fields is not None and not parser.is_repeated(fields):
            rows.append(fields)
            places.append(place)
    views, skipped, unparsed, counts = _hits(parser.product.columns(rows), requests)
    skipped[_NOT_A_REQUEST] = len(lines) - len(rows) - len(refused)
    skipped = {reason: number for reason, number in skipped.items() if number}
    return ParsedLines(len(lines), views, skipped, sorted([*refused, *(places[row] for row in unparsed)]), counts)


def _hits(asked: RequestColumns, requests: RequestCache) -> tuple[pa.Table, dict[str, int], list[int], pa.Table]:
    """Return the hits, the number of skipped lines by reason, the rows that are left to the parser, and the counts of
    the other requests."""
    ts_us, status = pa.array(map(_us, asked.times), pa.int64()), _statuses(asked.statuses)
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


def _us(time: Time) -> int | None:
    try:
        return time_us(time)
    except InvalidLine:
        return None


def _statuses(statuses: Sequence[int]) -> pa.Array:
    """Return the statuses as 16-bit integers. If one of them does not fit, each status outside 0 to 999 becomes 0;
    neither is the status of a page view."""
    try:
        return pa.array(statuses, pa.int16())
    except (pa.ArrowInvalid, OverflowError):
        return pa.array([status if 0 <= status < 1_000 else 0 for status in statuses], pa.int16())
