"""Views by people that AI products sent: their referrer or `utm_source` is that of a product.

`hosts` and `campaigns` have the operators of the products by the referring hosts and by the values of `utm_source`.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
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
WHERE sender IS NOT NULL GROUP BY ALL HAVING visits > 0 ORDER BY visits DESC, {by}
"""


class SentPage(NamedTuple):
    """A page to which AI products sent visits, and the reads of the page by AI."""

    path: str
    visits: int
    reads: int


def by_operator(
    statements: Statements, snapshot: Snapshot, scope: Scope, hosts: Names, campaigns: Names
) -> dict[str, int]:
    """Return the visits of each operator, 0 included."""
    visits = _visits(statements, snapshot, scope, "sender", hosts, campaigns)
    return dict.fromkeys([*hosts.values(), *campaigns.values()], 0) | (visits or {})


def by_page(
    statements: Statements, snapshot: Snapshot, scope: Scope, hosts: Names, campaigns: Names, limit: int
) -> list[SentPage] | None:
    """Return the pages with most visits; None if they take long to count."""
    visits = _visits(statements, snapshot, scope, "path", hosts, campaigns)
    if visits is None:
        return None
    first = dict(islice(visits.items(), limit))
    reads = pages.some(statements, snapshot, scope, first) if first else {}
    return [SentPage(path, count, reads.get(path, Counts()).ai) for path, count in first.items()]


def _visits(
    statements: Statements, snapshot: Snapshot, scope: Scope, by: str, hosts: Names, campaigns: Names
) -> dict[str, int] | None:
    """Return the visits by sender or path, most visits first; None if those by path take long to count.

    Filters that select agents are ignored: visits are by people.
    """
    agents = dict.fromkeys(("agent", "operator", "purpose", "verification"))
    of_people = replace(scope, filters=scope.filters.but(traffic="human", **agents))
    columns = ("traffic", "referrerHost", "utmSource", *(["path"] if by == "path" else []))
    chosen = cells.select(snapshot, statements.rollups(snapshot), of_people, columns)
    if by == "path" and chosen.is_slow:
        return None
    products = {"hosts": hosts, "campaigns": campaigns}
    tables = {name: pa.table({"name": [*of], "operator": [*of.values()]}) for name, of in products.items()}

    def fetch() -> pa.Table:
        return statements.fetch(snapshot, of_people, chosen, _SENT.format(by=by, cells=chosen.sql), tables)

    key = "visits", by, of_people, *hosts.items(), None, *campaigns.items(), snapshot.rows_key
    return dict(zip(*statements.cached(key, fetch).to_pydict().values(), strict=True))
