"""What was said of the requests of a log before: each is looked at once."""

from collections.abc import Mapping
from functools import lru_cache
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc

from ingest.errors import InvalidLine
from ingest.formats.page_filter import Pages, Skip, page_view
from ingest.formats.request import Request
from ingest.hits.hit import Hit
from ingest.hits.url import PATH_CHARACTERS_MAX

KNOWN_MAX, KNOWN_CHARACTERS_MAX = 200_000, 32 * 1024 * 1024
"""With as many texts a memory is full; each line of a log may have one that no other has."""
PAGE, METHOD, STATUS, EXCLUDED, NOT_A_PAGE, LEFT = range(6)
"""What comes of a line; one that is left is for the parser to say."""
SKIPPED: Mapping[Skip, int] = {
    "method": METHOD,
    "status": STATUS,
    "excluded": EXCLUDED,
    "not_a_page": NOT_A_PAGE,
}
_REQUEST = r"^[A-Za-z]+ [!#-\[\]-~]+ HTTP/[0-9](?:\.[0-9])?$"
_ASKED = r"^GET [!#->@-\[\]-~][!#-\[\]-~]* HTTP/[0-9](?:\.[0-9])?$"
"""Plain, and not for a query alone."""
SAID = pa.schema({"outcome": pa.uint8(), "path": pa.string(), "utm_source": pa.string()})
"""What comes of the line of a request that was answered, and what of it is stored."""
_Said = tuple[int, str | None, str | None]
_LEFT: _Said = (LEFT, None, None)
_METHOD: _Said = (METHOD, None, None)


class Memory:
    """What was said of requests before, under one choice of pages. Safe for several threads."""

    def __init__(self, pages: Pages) -> None:
        self.pages = pages
        self._lock = Lock()
        self._numbers: dict[str, int] = {}
        """By request, without a query that says nothing."""
        self._said = SAID.empty_table()
        """By number."""
        self._characters = 0

    def said_of(self, requests: pa.Array) -> pa.Table:
        """Of each `GET target HTTP/version`: SAID."""
        cut = _cut(requests).dictionary_encode()
        texts = cut.dictionary.to_pylist()
        with self._lock:
            if new := [text for text in texts if text not in self._numbers]:
                self._learn(new)
            numbers = pa.array([self._numbers[text] for text in texts], pa.int32())
            said = self._said
        return said.take(numbers.take(cut.indices))

    @property
    def is_full(self) -> bool:
        """Whether another is to be begun."""
        return len(self._numbers) > KNOWN_MAX or self._characters > KNOWN_CHARACTERS_MAX

    def _learn(self, requests: list[str]) -> None:
        is_plain = pc.match_substring_regex(pa.array(requests, pa.string()), _REQUEST).to_pylist()
        said = [
            _said_of(request, self.pages) if plain else _LEFT for request, plain in zip(requests, is_plain, strict=True)
        ]
        columns = zip(*said, strict=True)
        learnt = pa.table([pa.array(column, field.type) for column, field in zip(columns, SAID, strict=True)], SAID)
        numbers = range(self._said.num_rows, self._said.num_rows + learnt.num_rows)
        self._said = pa.concat_tables([self._said, learnt]).combine_chunks()
        self._numbers.update(zip(requests, numbers, strict=True))  # last: each has its row, whatever fails before
        self._characters += sum(map(len, requests))


def memory(pages: Pages) -> Memory:
    """That of all logs that are read so. A full one is begun anew."""
    if _memory(pages).is_full:
        _memory.cache_clear()
    return _memory(pages)


_memory = lru_cache(1)(Memory)


def _cut(requests: pa.Array) -> pa.Array:
    """Without the queries that say nothing here, so that there are few to look at."""
    has_query = pc.and_not(pc.match_substring(requests, "?"), pc.match_substring(requests, "utm_source="))
    if not pc.any(has_query).as_py():
        return requests
    asked = requests.filter(has_query)
    is_cut = pc.and_(
        pc.match_substring_regex(asked, _ASKED), pc.less_equal(pc.binary_length(asked), PATH_CHARACTERS_MAX)
    )
    return pc.replace_with_mask(requests, has_query, pc.if_else(is_cut, _without_query(asked), asked))


def _without_query(requests: pa.Array) -> pa.Array:
    before = pc.list_element(pc.split_pattern(requests, "?", max_splits=1), 0)
    return pc.binary_join_element_wise(before, " HTTP/1.1", "")


def _said_of(request: str, pages: Pages) -> _Said:
    method, target, _ = request.split(" ")
    if method != "GET":
        return _METHOD
    try:
        found = page_view(Request(0, method, "" if target == "-" else target, 200, "", ""), pages)
    except InvalidLine:
        return _LEFT
    return (PAGE, found.path, found.utm_source) if isinstance(found, Hit) else (SKIPPED[found], None, None)
