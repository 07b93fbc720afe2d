"""Tables of the lake, each declared once.

The columns of their batches in the hot log, loads, compaction, deletion, SQL views, commands and checks follow from the
declaration.
"""

from dataclasses import dataclass

import pyarrow as pa

from warehouse.schema import ASSET_LOADS, DAILY_ERRORS, EVENTS, HITS, HOT, REQUESTS


@dataclass(frozen=True, slots=True)
class Spec:
    """Definition of a table: its name, columns, partition column and the sort order of a file's rows.

    `hot` are the columns of its rows in the hot log.
    `view` is the table's name in SQL, and `meaning` what a row is. A table of counts has partial counts, which add up:
    `sums` has the aggregate of each count, and the other columns are the key.
    """

    name: str
    schema: pa.Schema
    partition: str
    order: tuple[str, ...]
    hot: pa.Schema
    view: str
    meaning: str
    sums: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> list[str]:
        """Return the columns of the key of a table of counts."""
        return [name for name in self.schema.names if name not in dict(self.sums)]

    def added_up(self, rows: str) -> str:
        """Return the SELECT of the rows of a relation, with partial counts of the same key added up."""
        sums = {name: f"{how}({name})" + ("::BIGINT" if how == "sum" else "") for name, how in self.sums}
        columns = (f"{sums[name]} AS {name}" if name in sums else name for name in self.schema.names)
        return f"SELECT {', '.join(columns)} FROM {rows}" + (f" GROUP BY {', '.join(self.key)}" if sums else "")


HITS_TABLE = Spec("hits", HITS, "date", ("project_id", "path", "ts"), HOT, "hits", "One row a page view")
ASSET_LOADS_TABLE = Spec(
    "asset_loads",
    ASSET_LOADS,
    "date",
    ("project_id", "visitor"),
    ASSET_LOADS,
    "asset_loads",
    "Styles, scripts, fonts and images that the visitors of a day loaded: sum loads, never count rows",
    (("loads", "sum"),),
)
REQUESTS_TABLE = Spec(
    "requests",
    REQUESTS,
    "month",
    ("project_id", "date", "traffic", "agent"),
    REQUESTS,
    "requests",
    "All requests of access logs and servers, by day: sum requests, never count rows",
    (
        *((name, "sum") for name in ("requests", "sized", "bytes", "errors")),
        ("first_seen", "min"),
        ("last_seen", "max"),
    ),
)
EVENTS_TABLE = Spec(
    "events",
    EVENTS,
    "date",
    ("project_id", "name", "ts"),
    EVENTS.remove(EVENTS.get_field_index("date")),
    "events",
    "One row an event: what a reader did on a page",
)
DAILY_ERRORS_TABLE = Spec(
    "daily_errors",
    DAILY_ERRORS,
    "month",
    (),
    DAILY_ERRORS,
    "errors",
    "Requests of AI agents and bots that were answered with an error, by day: sum requests, never count rows",
)
"""Table of older releases. Its rows have moved to `requests`, and its SQL view is `errors`."""
TABLES = (HITS_TABLE, ASSET_LOADS_TABLE, REQUESTS_TABLE, EVENTS_TABLE)
"""Tables of the lake, in the order in which the loader commits to them: `hits` first. To add a table, add a row."""
VISITOR_TABLES = (ASSET_LOADS_TABLE, EVENTS_TABLE)
"""Tables by UTC day that, like `hits`, decide on the visits of a day and on the evidence of its visitors."""
