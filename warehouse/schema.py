"""Columns of the lake's tables and of the view `daily_views`, of a batch in the hot log, and of the file of AI agents.

The comments of columns are stored in the tables and the file (field metadata `comment`).
"""

import pyarrow as pa

from warehouse.columns.hits import COLUMNS

TIMESTAMP = pa.timestamp("us", tz="UTC")
_TYPES = {"string": pa.string(), "date32": pa.date32(), "timestamp": TIMESTAMP}
_TYPES |= {"int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64()}


def _column(name: str, kind: pa.DataType, comment: str, *, required: bool = False) -> pa.Field:
    return pa.field(name, kind, nullable=not required, metadata={"comment": comment})


HITS = pa.schema([_column(each.name, _TYPES[each.type], each.meaning, required=each.is_required) for each in COLUMNS])
"""One row for each page view."""
HOT = HITS.remove(HITS.get_field_index("date"))
"""Columns of a batch in the hot log: those of `hits` without the partition column, which the loader derives."""
Row = tuple[str | int | None, ...]
"""One value for each column of a batch, such as `HOT`, in its order. Times are in microseconds since 1970."""

CLASSIFICATION = pa.schema(
    [HOT.field(name) for name in "traffic agent operator purpose rule ruleset user_agent browser os device".split()]
)
"""A user agent and its classification."""

DAILY_VIEWS = pa.schema(
    [
        HOT.field("project_id"),
        _column("month", pa.string(), "UTC month of date, YYYY-MM", required=True),
        _column("date", pa.date32(), "UTC day", required=True),
        HOT.field("path"),
        HOT.field("traffic"),
        HOT.field("agent"),
        _column("views", pa.int64(), "page views", required=True),
    ]
)
"""Page views by day: columns of the SQL view `daily_views`, which are computed from `hits`."""

ASSET_LOADS = pa.schema(
    [
        HOT.field("project_id"),
        _column("date", pa.date32(), "UTC day; the partition", required=True),
        _column("visitor", pa.int64(), "visitor, as in hits; null for unknown addresses"),
        _column(
            "loads", pa.int64(), "styles, scripts, fonts and images; several rows of one key add up", required=True
        ),
    ]
)
"""Assets that visitors loaded, by day, as access logs show them."""

REQUESTS = pa.schema(
    [
        HOT.field("project_id"),
        _column("month", pa.string(), "UTC month of date, YYYY-MM; the partition", required=True),
        DAILY_VIEWS.field("date"),
        HOT.field("traffic"),
        HOT.field("agent"),
        HOT.field("operator"),
        _column("kind", pa.string(), "page, markdown, robots, sitemap, feed, llms, asset, api or other", required=True),
        _column("status", pa.int16(), "HTTP status served", required=True),
        _column("cache", pa.string(), "hit or miss of the cache in front of the server; null if not known"),
        _column("ms_below", pa.int64(), "upper bound of the time of the response in ms; null if not known"),
        _column("requests", pa.int64(), "requests; several rows of one key add up", required=True),
        _column("sized", pa.int64(), "requests with a known number of bytes", required=True),
        _column("bytes", pa.int64(), "bytes of the sized requests", required=True),
        _column("first_seen", TIMESTAMP, "time of the first of these requests, UTC", required=True),
        _column("last_seen", TIMESTAMP, "time of the last of these requests, UTC", required=True),
        _column("source", pa.string(), "log or server; null in rows of older releases"),
        _column(
            "path", pa.string(), "path of errors, normalised; null for unnamed bots, HTTP libraries and spoofed agents"
        ),
        _column("errors", pa.int64(), "errors that AI agents and bots got on pages; those of logs are also requests"),
    ]
)
"""All requests that access logs and servers sent, by day, and the errors of AI agents and bots by path."""

_OF_ERRORS = "project_id month date path traffic agent status requests first_seen last_seen".split()
DAILY_ERRORS = pa.schema([*map(REQUESTS.field, _OF_ERRORS)])
"""Errors that AI agents and bots got, by day: columns of the SQL view `errors`, which are computed from `requests`."""

EVENTS = pa.schema(
    [
        HOT.field("project_id"),
        _column("date", pa.date32(), "UTC day of ts; the partition", required=True),
        _column("ts", TIMESTAMP, "when the event happened, UTC, microseconds", required=True),
        _column("event_id", pa.string(), "sender's id of the event, counted once in 7 days"),
        _column("name", pa.string(), "name of the event, such as Signup or File Download", required=True),
        _column("path", pa.string(), "normalised path of the page, or of the downloaded file", required=True),
        _column("visitor", pa.int64(), "visitor, as in hits; null for unknown addresses"),
        HOT.field("traffic"),
        HOT.field("agent"),
        HOT.field("source"),
        _column("interactive", pa.bool_(), "false if the page sent it without an action of the reader", required=True),
        _column("props", pa.string(), "properties: a JSON object with texts; null without properties"),
    ]
)
"""One row for each event."""

AGENTS = pa.schema(
    [
        _column("name", pa.string(), "name of the AI agent, as in hits.agent", required=True),
        _column("operator", pa.string(), "who runs it", required=True),
        _column("purpose", pa.string(), "training, search, assistant, agent or data", required=True),
        _column("pattern", pa.string(), "whole words of the user agent that identify it, in any case", required=True),
    ]
)
"""One row for each pattern: an agent with two patterns has two rows."""
