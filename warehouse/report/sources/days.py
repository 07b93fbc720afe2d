"""Days on which each source of a project sent hits. Days are numbered as `date.toordinal` does."""

from collections import defaultdict
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

SCHEMA = pa.schema([("source", pa.string()), ("days", pa.list_(pa.int32()))])
"""Columns of the days of each source, which are sorted."""


_TIME = pa.timestamp("us", "UTC")


def in_files(counts: pa.Table) -> pa.Table:
    """Return the days of counts by source and day."""
    sources, days = (counts[name].to_pylist() for name in ("source", "day"))
    return _table((source, day.toordinal()) for source, day in zip(sources, days, strict=True))


def in_rows(hot: pa.Table, project: str) -> pa.Table:
    """Return the days of the hot rows of a project."""
    rows = hot.filter(pc.field("project_id") == project)
    pairs = pa.table({"source": rows["source"], "day": rows["ts"].cast(pa.date32())})
    distinct = pairs.group_by(["source", "day"]).aggregate([]).to_pylist()
    return _table((each["source"], each["day"].toordinal()) for each in distinct)


def union(one: pa.Table, another: pa.Table, first_and_last: pa.Table) -> pa.Table:
    """Return the days of two tables, with the columns first and last of `source_coverage.first_and_last_in_files`."""
    both = pa.concat_tables([one, another]).to_pylist()
    days = _table((row["source"], day) for row in both for day in row["days"])
    times = first_and_last.group_by("source").aggregate([("first_hit", "min"), ("last_hit", "max")]).to_pylist()
    by_source = {row["source"]: row for row in times}
    rows = [by_source[source] for source in days["source"].to_pylist()]
    first, last = ([row[name] for row in rows] for name in ("first_hit_min", "last_hit_max"))
    return days.append_column("first", pa.array(first, _TIME)).append_column("last", pa.array(last, _TIME))


def _table(pairs: Iterable[tuple[str, int]]) -> pa.Table:
    days = defaultdict[str, set[int]](set)
    for source, day in pairs:
        days[source].add(day)
    return pa.table([list(days), list(map(sorted, days.values()))], SCHEMA)
