"""Requests for pages and assets among the parsed lines of a block, as columns."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ingest.formats.page_filter import ERRORS
from ingest.hits.evidence import ACCEPT_CHARACTERS_MAX, ADDRESS_CHARACTERS_MAX
from ingest.hits.hit import TEXT_CHARACTERS_MAX
from ingest.imports.dictionary import one_array, take
from ingest.imports.request_cache import LOAD, METHOD, PAGE, PARSED, SKIPPED, STATUS, UNPARSED
from ingest.imports.rows import PARSED_HITS

CHARACTERS_MAX = dict.fromkeys(("referrer", "user_agent"), TEXT_CHARACTERS_MAX)
"""Maximum length of the fields that the parser of the format cuts if they are longer."""
EVIDENCE_CHARACTERS_MAX = {"address": ADDRESS_CHARACTERS_MAX, "accept": ACCEPT_CHARACTERS_MAX}
"""Maximum length of the fields that are treated as not logged if they are longer."""


@dataclass(frozen=True, slots=True)
class ParsedLines:
    """Result of parsing lines by columns: the number of lines, the hits (`rows.PARSED_HITS`), the number of skipped
    lines by reason, and the places, from 0, of the lines that are left to the parser of the format. `requests` are the
    others (`asked.ASKED`)."""

    lines: int
    hits: pa.Table
    skipped: Mapping[str, int]
    unparsed: list[int]
    requests: pa.Table


LEFT = pa.scalar(UNPARSED, pa.uint8())
"""Outcome of a line that is left to the parser of the format."""


def outcomes(parsed: pa.Table, requests: pa.Array, status: pa.Array, is_plain: pa.Array) -> pa.Array:
    """Return the outcome of each line, without checking the lengths of its texts.

    `requests` has for each line the index of its row in `parsed` (`request_cache.PARSED`). A line that is not plain is
    left to the parser.
    """
    outcome = one_array(parsed["outcome"]).take(requests)
    is_success = pc.or_(pc.and_(pc.greater_equal(status, 200), pc.less(status, 300)), pc.equal(status, 304))
    is_error = pc.and_(pc.greater_equal(status, ERRORS.start), pc.less(status, ERRORS.stop))
    is_final = pc.or_(is_success, pc.or_(pc.equal(outcome, METHOD), pc.equal(outcome, UNPARSED)))
    is_final = pc.or_(is_final, pc.and_(is_error, pc.equal(outcome, PAGE)))
    return pc.if_else(is_plain, pc.if_else(is_final, outcome, pa.scalar(STATUS, pa.uint8())), LEFT)


def is_hit(outcome: pa.Array) -> pa.Array:
    """Return whether each line is a page view or the load of an asset."""
    return pc.or_(pc.equal(outcome, PAGE), pc.equal(outcome, LOAD))


def skipped_and_unparsed(outcome: pa.Array) -> tuple[dict[str, int], list[int]]:
    """Return the number of skipped lines by reason, and the rows that are left to the parser of the format."""
    counts = {group["values"]: group["counts"] for group in outcome.value_counts().to_pylist()}
    skipped: dict[str, int] = {name: counts[number] for name, number in SKIPPED.items() if number in counts}
    return skipped, pc.indices_nonzero(pc.equal(outcome, UNPARSED)).to_pylist() if UNPARSED in counts else []


def is_odd(texts: pa.DictionaryArray, odd: str, characters_max: int) -> pa.Array:
    """Return whether each row's text matches the pattern `odd` or is too long; null for a row without a text."""
    is_long = pc.greater(pc.utf8_length(texts.dictionary), characters_max)
    return pc.or_(pc.match_substring_regex(texts.dictionary, odd), is_long).take(texts.indices)


def hits_of(fields: Mapping[str, pa.Array], requests: pa.Array, parsed: pa.Table) -> pa.Table:
    """Return the hits of lines, with path and query parameters from the lines' rows of `parsed`."""
    columns = {**fields, **{name: take(parsed[name], requests) for name in PARSED.names[2:]}}
    return pa.table([columns[name] for name in PARSED_HITS.names], schema=PARSED_HITS)


def within_limit(texts: pa.DictionaryArray, characters_max: int) -> pa.DictionaryArray:
    """Return the column with null in place of texts that are too long."""
    if (pc.max(pc.binary_length(texts.dictionary)).as_py() or 0) <= characters_max:
        return texts
    is_long = pc.greater(pc.utf8_length(texts.dictionary), characters_max)
    short = pc.if_else(is_long, pa.scalar(None, pa.string()), texts.dictionary).dictionary_encode()
    return pa.DictionaryArray.from_arrays(short.indices.take(texts.indices), short.dictionary)
