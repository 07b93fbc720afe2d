"""Cache of parsed request lines, shared by the chunks of an import."""

from collections.abc import Mapping
from functools import lru_cache
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc

from ingest.errors import InvalidLine
from ingest.formats.page_filter import Pages, Skip, kind_of, page_view
from ingest.formats.request import Request
from ingest.hits.hit import Hit
from ingest.hits.parameters import PATTERN
from ingest.hits.url import PATH_CHARACTERS_MAX
from warehouse.columns.hits import PARAMETERS

CACHED_MAX, CACHED_CHARACTERS_MAX = 200_000, 32 * 1024 * 1024
"""Sizes above which a cache is dropped, in requests and in characters: each line of a log may be a new request."""
PAGE, METHOD, STATUS, EXCLUDED, NOT_A_PAGE, UNPARSED, LOAD = range(7)
"""Outcomes of a line: a page view, one of the reasons to skip the line, UNPARSED for a line that the parser of the
format has to read, or LOAD for an asset or a download."""
SKIPPED: Mapping[Skip, int] = {"method": METHOD, "status": STATUS, "excluded": EXCLUDED, "not_a_page": NOT_A_PAGE}
PARSED = pa.schema({"outcome": pa.uint8(), **dict.fromkeys(("kind", "path", *PARAMETERS), pa.string())})
"""The outcome of a request that was answered with 200, its kind, and the columns that its page view has from it."""
_PLAIN = r"^[A-Za-z]+ [!#-\[\]-~]+ HTTP/[0-9](?:\.[0-9])?$"
_WITH_PATH = r"^GET [!#->@-\[\]-~][!#-\[\]-~]* HTTP/[0-9](?:\.[0-9])?$"
"""A plain GET whose target does not begin with its query."""
_Parsed = tuple[int | str | None, ...]
_NO_VALUES = (None,) * (len(PARSED) - 2)
_UNPARSED: _Parsed = (UNPARSED, None, *_NO_VALUES)


class RequestCache:
    """Cache of parsed request lines, for one choice of pages. Safe for several threads."""

    def __init__(self, pages: Pages) -> None:
        self.pages = pages
        self._lock = Lock()
        self._rows: dict[str, int] = {}
        """Row of `_parsed` by request, without a query that has no effect."""
        self._parsed = PARSED.empty_table()
        self._characters = 0

    def parse(self, requests: pa.Array) -> pa.Table:
        """Return the PARSED row of each request, a text such as `GET /path HTTP/1.1`."""
        short = _without_queries(requests).dictionary_encode()
        texts = short.dictionary.to_pylist()
        with self._lock:
            if new := [text for text in texts if text not in self._rows]:
                self._add(new)
            rows = pa.array([self._rows[text] for text in texts], pa.int32())
            parsed = self._parsed
        return parsed.take(rows.take(short.indices))

    @property
    def is_full(self) -> bool:
        return len(self._rows) > CACHED_MAX or self._characters > CACHED_CHARACTERS_MAX

    def _add(self, requests: list[str]) -> None:
        is_plain = pc.match_substring_regex(pa.array(requests, pa.string()), _PLAIN).to_pylist()
        marked = zip(requests, is_plain, strict=True)
        parsed = [_parse(request, self.pages) if plain else _UNPARSED for request, plain in marked]
        columns = zip(*parsed, strict=True)
        new = pa.table([pa.array(column, field.type) for column, field in zip(columns, PARSED, strict=True)], PARSED)
        rows = range(self._parsed.num_rows, self._parsed.num_rows + new.num_rows)
        self._parsed = pa.concat_tables([self._parsed, new]).combine_chunks()
        # Last: if the above fails, no request has a number without a row.
        self._rows.update(zip(requests, rows, strict=True))
        self._characters += sum(map(len, requests))


def request_cache(pages: Pages) -> RequestCache:
    """Return the cache that all logs with this choice of pages share, or a new cache if the shared one is full."""
    if _cached(pages).is_full:
        _cached.cache_clear()
    return _cached(pages)


_cached = lru_cache(1)(RequestCache)


def _without_queries(requests: pa.Array) -> pa.Array:
    """Remove the queries without parameters, which have no effect on the row, to make the distinct requests few."""
    has_query = pc.and_not(pc.match_substring(requests, "?"), pc.match_substring_regex(requests, PATTERN))
    if not pc.any(has_query).as_py():
        return requests
    with_query = requests.filter(has_query)
    is_removable = pc.and_(
        pc.match_substring_regex(with_query, _WITH_PATH),
        pc.less_equal(pc.binary_length(with_query), PATH_CHARACTERS_MAX),
    )
    before_query = pc.list_element(pc.split_pattern(with_query, "?", max_splits=1), 0)
    without_query = pc.binary_join_element_wise(before_query, " HTTP/1.1", "")
    return pc.replace_with_mask(requests, has_query, pc.if_else(is_removable, without_query, with_query))


def _parse(request: str, pages: Pages) -> _Parsed:
    method, target, _ = request.split(" ")
    asked = Request(0, method, "" if target == "-" else target, 200, "", "")
    kind = kind_of(asked)
    try:
        view = page_view(asked, pages)
    except InvalidLine:
        return _UNPARSED
    if not isinstance(view, Hit):
        return (SKIPPED[view], kind, *_NO_VALUES)
    parameters = map(view.parameters.get, PARAMETERS)
    return _UNPARSED if view.cut else (PAGE if view.path[:1] == "/" else LOAD, kind, view.path, *parameters)
