"""The daily count: `daily_views` is `hits`, grouped by project, day, path, traffic and agent.

There is one definition in SQL, for rows in files, and one in Arrow, for rows in memory. `warehouse.doctor` has its own,
with which it checks both.
"""

import pyarrow as pa
import pyarrow.compute as pc

from warehouse import encoding
from warehouse.schema import DAILY_VIEWS, DAILY_VIEWS_KEY, DAILY_VIEWS_ORDER

_KEY = ", ".join(DAILY_VIEWS_KEY)
_TEXTS = ("project_id", "path", "traffic", "agent")
"""Texts of the key that are columns of `hits`."""


def count_sql(hits: str) -> str:
    """Return the SELECT that counts hits. `hits` is a relation that has the columns of the table, `date` included."""
    return (
        "SELECT project_id, strftime(date, '%Y-%m') AS month, date, path, traffic, agent, count(*) AS views "
        f"FROM {hits} GROUP BY {_KEY}"
    )


def add_up_sql(daily_views: str) -> str:
    """Return the SELECT that adds up partial counts of the same key."""
    return f"SELECT {_KEY}, sum(views)::BIGINT AS views FROM {daily_views} GROUP BY {_KEY}"


def count(hits: pa.Table) -> pa.Table:
    """Return the counts of hits, as rows of `daily_views`. `hits` has at least the columns of `HOT`.

    The rows are sorted by month and, within a month, as in a file of `daily_views`.
    """
    return count_encoded(hits).cast(DAILY_VIEWS)


def count_encoded(hits: pa.Table) -> pa.Table:
    """Return the counts of hits as `count` does, with dictionary-encoded texts. The texts of `hits` may be encoded."""
    texts = {name: encoding.with_sorted_dictionary(encoding.encoded(hits[name])) for name in _TEXTS}
    keys = pa.table({**{name: text.indices for name, text in texts.items()}, "date": hits["ts"].cast(pa.date32())})
    groups = keys.group_by(keys.column_names).aggregate([([], "count_all")])
    groups = groups.rename_columns([*keys.column_names, "views"])
    groups = groups.append_column("month", pc.floor_temporal(groups["date"], unit="month")).combine_chunks()
    groups = groups.sort_by([(column, "ascending") for column in ("month", *DAILY_VIEWS_ORDER)])
    columns = {name: groups[name].combine_chunks() for name in groups.column_names}
    decoded = {name: pa.DictionaryArray.from_arrays(columns[name], text.dictionary) for name, text in texts.items()}
    counts = columns | decoded | {"month": _month_names(columns["month"])}
    return pa.table({name: counts[name] for name in DAILY_VIEWS.names})


def _month_names(first_days: pa.Array) -> pa.DictionaryArray:
    """Return the month of each date. To format each date would take three times as long as the grouping."""
    days = first_days.dictionary_encode()
    return pa.DictionaryArray.from_arrays(days.indices, pc.strftime(days.dictionary, format="%Y-%m"))
