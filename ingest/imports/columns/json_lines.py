"""Parser of whole blocks of a JSON log by columns.

Lines are decoded by the parser of their format (`ingest.formats.json_lines`), which is the reference, and each distinct
value is processed once. The lines with an odd text are left to the parser.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingest.errors import InvalidLine
from ingest.formats.fields import storable, time_us
from ingest.formats.json_lines import JsonParser
from ingest.formats.json_products import Logged, Time
from ingest.formats.page_filter import Skip
from ingest.formats.request import LINE_BYTES_MAX
from ingest.hits.hit import cache_of
from ingest.imports.columns.asked import ASKED
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
    within_limit,
)
from ingest.imports.dictionary import TEXTS, replace, take
from ingest.imports.request_cache import RequestCache
from ingest.places import country
from ingest.places.language import language
from warehouse.requests import ms_below

_ODD = r"[\x00-\x1f\x7f]"  # with url.UNSTORABLE, except surrogates, which Arrow refuses
_NOT_A_REQUEST: Skip = "not_a_request"
_PLACES = {"country": country.known, "language": language}
_Columns = Mapping[str, Sequence[Any]]
"""Fields of `Logged` as columns."""


def parse(block: bytes, parser: JsonParser, requests: RequestCache) -> ParsedLines:
    """Parse a block of whole lines. Decoding holds the GIL; most of the other work releases it."""
    lines = block.split(b"\n")[:-1]
    rows, places, refused = list[Logged](), list[int](), list[int]()
    for place, line in enumerate(lines):
        try:
            fields = parser.fields(line[:LINE_BYTES_MAX])
        except InvalidLine:
            refused.append(place)
            continue
        if fields is not None and not parser.is_repeated(fields):
            rows.append(parser.product.logged(fields))
            places.append(place)
    asked = {name: [row[place] for row in rows] for place, name in enumerate(Logged._fields)}
    views, skipped, unparsed, others = _hits(asked, requests)
    skipped[_NOT_A_REQUEST] = len(lines) - len(rows) - len(refused)
    skipped = {reason: number for reason, number in skipped.items() if number}
    return ParsedLines(len(lines), views, skipped, sorted([*refused, *(places[row] for row in unparsed)]), others)


def _hits(asked: _Columns, requests: RequestCache) -> tuple[pa.Table, dict[str, int], list[int], pa.Table]:
    """Return the hits, the number of skipped lines by reason, the rows that are left to the parser, and the other
    requests."""
    ts_us = pa.array(map(_us, asked["time"]), pa.int64())
    status = pa.array([each if 0 <= each < 1_000 else 0 for each in asked["status"]], pa.int16())
    line = pc.binary_join_element_wise(_texts(asked["method"]), _texts(asked["target"]), "HTTP/1.1", " ")
    request = line.dictionary_encode()
    parsed = requests.parse(request.dictionary)
    outcome = outcomes(parsed, request.indices, status, ts_us.is_valid())
    user_agent = _texts(asked["user_agent"]).dictionary_encode()
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
    others = _asked(asked, known).filter(pa.array(is_counted))
    return hits_of(columns, columns["request"], parsed), skipped, unparsed, others


def _asked(asked: _Columns, known: dict[str, pa.Array]) -> pa.Table:
    """Return requests as `request_counts.ASKED`."""
    columns = {
        **known,
        "cache": pa.array(map(cache_of, asked["cache"]), pa.string()).dictionary_encode(),
        "ms_below": pa.array([ms_below(each) for each in asked["ms"]], pa.int64()),
        "bytes": pa.array(asked["size"], pa.int64()),
    }
    return pa.table([columns[name] for name in ASKED.names], schema=ASKED)


def _view_texts(asked: _Columns, rows: Sequence[int]) -> dict[str, pa.DictionaryArray]:
    """Return the texts of these rows, null where they are not logged, except of the user agent."""
    names = "referrer", "user_agent", *EVIDENCE_CHARACTERS_MAX
    columns = {name: _texts([asked[name][row] for row in rows]).dictionary_encode() for name in names}
    for name in columns.keys() - {"user_agent"}:
        columns[name] = replace(columns[name], [""], None)
    for name, characters_max in EVIDENCE_CHARACTERS_MAX.items():
        columns[name] = within_limit(columns[name], characters_max)
    return columns | {name: _places(asked[name], rows, of) for name, of in _PLACES.items()}


def _places(logged: Sequence[str], rows: Sequence[int], of: Callable[[str], str | None]) -> pa.DictionaryArray:
    """Return what `of` reads in the logged text of each of the rows."""
    if not any(logged):
        return pa.nulls(len(rows), TEXTS)
    texts = _texts([logged[row] for row in rows]).dictionary_encode()
    return take([of(storable(text)) for text in texts.dictionary.to_pylist()], texts.indices)


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
