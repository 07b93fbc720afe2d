"""The daily count: `daily_views` is `hits`, grouped by project, day, path, traffic and agent.

There is one definition in SQL, for rows in files, and one in Arrow, for rows in memory. Two modules have their own:
`warehouse.lake.staging`, which groups dictionary codes for speed, and `warehouse.doctor`, which checks the others.
"""

import pyarrow as pa
import pyarrow.compute as pc

from warehouse.schema import DAILY_VIEWS, DAILY_VIEWS_KEY, DAILY_VIEWS_ORDER

_KEY = ", ".join(DAILY_VIEWS_KEY)


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
    """Return the counts of hits, in the order of a file of `daily_views`. `hits` has at least the columns of `HOT`."""
    keys = pa.table(
        {
            "project_id": hits["project_id"],
            "month": pc.strftime(hits["ts"], format="%Y-%m"),
            "date": pc.cast(hits["ts"], pa.date32()),
            "path": hits["path"],
            "traffic": hits["traffic"],
            "agent": hits["agent"],
        }
    )
    counts = keys.group_by(DAILY_VIEWS_KEY).aggregate([([], "count_all")])
    named = counts.rename_columns([*DAILY_VIEWS_KEY, "views"]).select(DAILY_VIEWS.names).cast(DAILY_VIEWS)
    return named.sort_by([(column, "ascending") for column in DAILY_VIEWS_ORDER])
