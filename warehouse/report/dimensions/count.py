"""Counts of rows of a dimension by a grouping, in the columns of `hit_counts.count_files`.

The reference is the SQL of the same groupings over `hits`.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warehouse.blocks.cumulative import Array
from warehouse.control import policy
from warehouse.control.policy import Periods
from warehouse.report.dimensions.rows import VALUE, Column, DimensionRows, of_hits
from warehouse.report.filters import Filters
from warehouse.rollups.schema import SOURCES, TRAFFIC

DAY, QUARTER, VERIFICATION = "day", "quarter", "verification"
"""Columns of a grouping that are not those of a key. DAY and QUARTER are numbers, and the last of several columns."""
TOTAL = "total"
"""Dimension whose rows have no value."""
NOT_CHECKED = "not_checked"
"""Verification of an AI agent or bot whose column is null, as in `filters.VERIFICATION`."""
QUARTERS_OF_A_DAY = 96
_KINDS = len(TRAFFIC)


def count(rows: DimensionRows, filters: Filters, columns: Sequence[str], sign: int = 1) -> pa.Table:
    """Return the views of each value of `columns`, multiplied by `sign`: value, human, ai and bot.

    A value is a struct if there are several columns. The filters have no path.
    """
    texts = [_column(rows.keys, name) for name in columns if name not in (DAY, QUARTER)]
    group_of_key, codes = _groups(texts, len(rows.keys[VALUE].codes))
    kinds = codes_of(rows.keys["traffic"], TRAFFIC)
    counters = np.where(matches(rows.keys, filters), group_of_key * _KINDS + kinds, -1)[rows.key_ids]
    if filters.policy:
        counters = np.where(_is_counted(rows, filters.policy), counters, -1)
    times = _times(rows, columns[-1])
    first = int(times.min()) if times.size else 0
    sums = _add_up(counters, times - first, rows.views, codes.shape[1] * _KINDS)
    present = np.flatnonzero(sums.any(axis=1))
    time, group = np.divmod(present, codes.shape[1])
    values = [each.at(of_group[group]) for each, of_group in zip(texts, codes, strict=True)]
    if len(texts) < len(columns):
        values.append(pa.array(time + first))
    human, ai, bot = np.ascontiguousarray((sums[present] * sign).T)
    value = values[0] if len(values) == 1 else pa.StructArray.from_arrays(values, list(columns))
    return pa.table({"value": value, "human": human, "ai": ai, "bot": bot})


def _add_up(counters: Array, times: Array, views: Array, width: int) -> Array:
    """Return the sum of each counter, from 0 to `width`, at each time. A row has the kinds of traffic of one group.

    Rows with the counter -1 are not added up. A sum is exact below 2^53.
    """
    length = width * (int(times.max(initial=0)) + 1)
    index = np.where(counters < 0, length, times * width + counters)
    return np.bincount(index, views, length + 1)[:length].astype(np.int64).reshape(-1, _KINDS)


def _groups(columns: Sequence[Column], size: int) -> tuple[Array, Array]:
    """Return the group of each key, and for each column the codes of the groups."""
    combined, radices = np.zeros(size, np.int64), [len(each.texts) + 1 for each in columns]
    for column, radix in zip(columns, radices, strict=True):
        combined = combined * radix + column.codes + 1
    if len(columns) == 1:
        return combined, np.arange(-1, radices[0] - 1)[np.newaxis]
    distinct = pa.array(combined).dictionary_encode()
    groups, codes = distinct.dictionary.to_numpy(), np.zeros((len(columns), max(len(distinct.dictionary), 1)), np.int64)
    for index, radix in reversed([*enumerate(radices)]):
        groups, codes[index, : groups.size] = np.divmod(groups, radix)
    return distinct.indices.to_numpy().astype(np.int64), codes - 1


def _column(keys: Mapping[str, Column], name: str) -> Column:
    if name != VERIFICATION:
        return keys[name]
    stored, is_human = keys[name], codes_of(keys["traffic"], TRAFFIC) == TRAFFIC.index("human")
    texts = stored.texts.to_pylist()
    texts += [] if NOT_CHECKED in texts else [NOT_CHECKED]
    is_unchecked = (stored.codes < 0) & ~is_human
    return Column(np.where(is_unchecked, texts.index(NOT_CHECKED), stored.codes), pa.array(texts, pa.string()))


def codes_of(column: Column, texts: Sequence[str]) -> Array:
    """Return the index of each item in `texts`, which have all items."""
    index = np.array([texts.index(text) for text in column.texts.to_pylist()], np.int64)
    return index[column.codes] if index.size else np.zeros(len(column.codes), np.int64)


def matches(keys: Mapping[str, Column], filters: Filters) -> Array:
    """Return whether each key matches the filters, which have no path. The source policy is ignored."""
    matches = np.ones(len(keys["traffic"].codes), bool)
    for name, text in filters.fields.items():
        column = _column(keys, name)
        matches &= column.codes == _code(column, text)
    return matches


def is_peoples_markdown(keys: Mapping[str, Column]) -> Array:
    """Return whether each key is of Markdown that people read. Keys without the column `format` are of no Markdown."""
    if "format" not in keys:
        return np.zeros(len(keys["traffic"].codes), bool)
    formats = keys["format"]
    is_markdown = np.isin(formats.codes, [_code(formats, text) for text in policy.MARKDOWN])
    is_counted: Array = is_markdown & (codes_of(keys["traffic"], TRAFFIC) == TRAFFIC.index("human"))
    return is_counted


def choose(hits: pa.Table, filters: Filters) -> pa.Table:
    """Return the rows of `hits` in memory that match the filters, which have no path."""
    if filters.is_empty and not filters.policy:
        return hits
    rows = of_hits(hits, TOTAL)
    is_chosen = matches(rows.keys, filters)
    if filters.policy:
        is_chosen &= _is_counted(rows, filters.policy)
    return hits.filter(pa.array(is_chosen))


def _is_counted(rows: DimensionRows, periods: Periods) -> Array:
    """Return whether the policy of its day counts each row. A row whose key has no `format` counts as not Markdown."""
    sources, kinds = codes_of(rows.keys["source"], SOURCES), codes_of(rows.keys["traffic"], TRAFFIC)
    is_markdown = is_peoples_markdown(rows.keys)
    by_period = []
    for name in (policy.DEFAULT, *(each.policy for each in periods)):
        counts = np.array([[policy.counts(name, source, kind) for kind in TRAFFIC] for source in SOURCES])
        by_period.append(counts[sources, kinds] ^ (is_markdown & (name == policy.BY_FORMAT)))
    starts = [each.from_date.toordinal() - 1 for each in periods]
    period_of_row = np.searchsorted(starts, rows.days + np.int64(rows.first_day), "right")
    is_counted: Array = np.stack(by_period)[period_of_row, rows.key_ids]
    return is_counted


def _code(column: Column, text: str) -> int:
    """Return the code of a text; one that no item has if the column does not have the text."""
    index = int(pc.index(column.texts, text).as_py())
    return index if index >= 0 else -2


def _times(rows: DimensionRows, column: str) -> Array:
    """Return the number of each row in the last column of a grouping; 0 if that is neither DAY nor QUARTER."""
    if column == DAY:
        return rows.days + np.int64(rows.first_day)
    if column == QUARTER:
        value = rows.keys[VALUE]
        quarters = np.array([int(text) for text in value.texts.to_pylist()], np.int64)
        of_key = quarters[value.codes] if quarters.size else np.zeros(len(value.codes), np.int64)
        return (rows.days + np.int64(rows.first_day)) * QUARTERS_OF_A_DAY + of_key[rows.key_ids]
    return np.zeros(len(rows.key_ids), np.int64)
