"""Views by people that AI products sent: their referrer or `utm_source` is that of a product.

`hosts` and `campaigns` have the operators of the products by the referring hosts and by the values of `utm_source`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from warehouse.query.snapshot import Snapshot
from warehouse.report import cells, pages
from warehouse.report.cells import Scope
from warehouse.report.results import Counts
from warehouse.report.statements import Statements

Names = Mapping[str, str]
_SENT = """
SELECT {by}, sum(views)::BIGINT AS visits
FROM (
    SELECT cells.*, coalesce(hosts.operator, campaigns.operator) AS sender FROM {cells} cells
    LEFT JOIN hosts ON referrerHost = hosts.name LEFT JOIN campaigns ON utmSource = campaigns.name
)
WHERE sender IS NOT NULL GROUP BY ALL HAVING visits > 0
"""
_PAGES = f"""
SELECT path, sum(visits)::BIGINT AS total,
    map_from_entries(list((sender, visits) ORDER BY visits DESC, sender)) AS senders
FROM ({_SENT}) GROUP BY path ORDER BY total DESC, path LIMIT {{limit}}
"""


class SentPage(NamedTuple):
    """A page to which AI products sent visits, its reads by AI, and the visits by operator, those with most first."""

    path: str
    visits: int
    reads: int
    operators: dict[str, int]


def by_operator(
    statements: Statements, snapshot: Snapshot, scope: Scope, hosts: Names, campaigns: Names
) -> dict[str, int]:
    """Return the visits of each operator, 0 included."""
    sent = _visits(statements, snapshot, scope, hosts, campaigns)
    visits = {row["sender"]: row["visits"] for row in sent.to_pylist()} if sent else {}
    return dict.fromkeys([*hosts.values(), *campaigns.values()], 0) | visits


def by_page(
    statements: Statements, snapshot: Snapshot, scope: Scope, hosts: Names, campaigns: Names, limit: int
) -> list[SentPage] | None:
    """Return the pages with most visits; None if they take long to count."""
    sent = _visits(statements, snapshot, scope, hosts, campaigns, limit)
    if sent is None:
        return None
    rows = [(row["path"], row["total"], dict(row["senders"])) for row in sent.to_pylist()]
    reads = pages.some(statements, snapshot, scope, [path for path, *_ in rows]) if rows else {}
    return [SentPage(path, total, reads.get(path, Counts()).ai, senders) for path, total, senders in rows]


def _visits(
    statements: Statements, snapshot: Snapshot, scope: Scope, hosts: Names, campaigns: Names, pages_max: int = 0
) -> pa.Table | None:
    """Return the visits by sender, or at most `pages_max` pages with their senders; None if pages take long to count.

    Filters that select agents are ignored: visits are by people.
    """
    agents = dict.fromkeys(("agent", "operator", "purpose", "verification"))
    of_people = replace(scope, filters=scope.filters.but(traffic="human", **agents))
    by, sql = (["path"], _PAGES) if pages_max else ([], _SENT)
    columns = ("traffic", "referrerHost", "utmSource", *by)
    chosen = cells.select(snapshot, statements.rollups(snapshot), of_people, columns)
    if by and chosen.is_slow:
        return None
    products = {"hosts": hosts, "campaigns": campaigns}
    tables = {name: pa.table({"name": [*of], "operator": [*of.values()]}) for name, of in products.items()}
    sql = sql.format(by=", ".join([*by, "sender"]), cells=chosen.sql, limit=pages_max)
    key = "visits", pages_max, of_people, *hosts.items(), None, *campaigns.items(), snapshot.rows_key
    return statements.cached(key, lambda: statements.fetch(snapshot, of_people, chosen, sql, tables))
