"""Columns of the lake's tables and of the view `daily_views`, of a batch in the hot log, and of the file of AI agents.

The comments of columns are stored in the tables and the file (field metadata `comment`).
"""

import pyarrow as pa

TIMESTAMP = pa.timestamp("us", tz="UTC")


def _column(name: str, kind: pa.DataType, comment: str, *, required: bool = False) -> pa.Field:
    return pa.field(name, kind, nullable=not required, metadata={"comment": comment})


_DATE = _column("date", pa.date32(), "UTC day of ts; the partition", required=True)

HOT = pa.schema(
    [
        _column("project_id", pa.string(), "project the hit belongs to", required=True),
        _column("ts", TIMESTAMP, "when the page was viewed, UTC, microseconds", required=True),
        _column("path", pa.string(), "normalised path: no query, fragment or trailing slash", required=True),
        _column("traffic", pa.string(), "human, ai or bot", required=True),
        _column("agent", pa.string(), "name of the AI agent or bot; null for people and unnamed bots"),
        _column("operator", pa.string(), "who runs the AI agent"),
        _column("purpose", pa.string(), "training, search, assistant, agent or data; null unless ai"),
        _column("rule", pa.string(), "the classification rule that matched", required=True),
        _column("ruleset", pa.string(), "version of the rules that classified it", required=True),
        _column("user_agent", pa.string(), "user agent as received; empty where there was none", required=True),
        _column("browser", pa.string(), "browser family"),
        _column("os", pa.string(), "operating system family"),
        _column("device", pa.string(), "kind of device"),
        _column("referrer", pa.string(), "referring URL as received"),
        _column("referrer_host", pa.string(), "host of the referring URL"),
        _column("utm_source", pa.string(), "utm_source of the page's query"),
        _column("format", pa.string(), "representation served, such as html or markdown"),
        _column("status", pa.int16(), "HTTP status served"),
        _column("source", pa.string(), "beacon, server or log", required=True),
        _column("event_id", pa.string(), "sender's id of the view, counted once in 7 days"),
        _column("received_at", TIMESTAMP, "when Readership took the hit, UTC", required=True),
        _column("verification", pa.string(), "result of the check of the agent's identity; null if there was none"),
        _column("verified_by", pa.string(), "method of the check, and the id of the list that it used"),
        _column("hints", pa.string(), "headers that browsers send and the request lacked, sorted, joined by a comma"),
    ]
)
"""Columns of a batch in the hot log: those of `hits` without the partition column, which the loader derives.

A later column is added at the end, because a batch of an older release has the first columns of the schema.
"""
Row = tuple[str | int | None, ...]
"""One value for each column of `HOT`, in its order. Times are in microseconds since 1970."""
EVENT_ID, SOURCE = HOT.names.index("event_id"), HOT.names.index("source")
"""Indexes of `event_id` and `source` in a `Row`."""
PathBounds = tuple[str, str | None]
"""Range of paths in byte order: its first path, and the first path after it, which is None if no path is after it."""

CLASSIFICATION = pa.schema(
    [HOT.field(name) for name in "traffic agent operator purpose rule ruleset user_agent browser os device".split()]
)
"""A user agent and its classification."""

HITS = HOT.insert(2, _DATE)
"""One row for each page view. Partitioned by date; sorted within a file by HITS_ORDER."""
HITS_ORDER = ("project_id", "path", "ts")

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

DAILY_ERRORS = pa.schema(
    [
        HOT.field("project_id"),
        _column("month", pa.string(), "UTC month of date, YYYY-MM; the partition", required=True),
        DAILY_VIEWS.field("date"),
        _column("path", pa.string(), "normalised path; null for unnamed bots, HTTP libraries and spoofed agents"),
        _column("traffic", pa.string(), "ai or bot", required=True),
        HOT.field("agent"),
        _column("status", pa.int16(), "HTTP status served, 400 to 599", required=True),
        _column("requests", pa.int64(), "requests; several rows of one key add up", required=True),
        _column("first_seen", TIMESTAMP, "time of the first of these requests, UTC", required=True),
        _column("last_seen", TIMESTAMP, "time of the last of these requests, UTC", required=True),
    ]
)
"""Errors that AI agents and bots got, by day. Partitioned by month; sorted within a file by DAILY_ERRORS_ORDER."""
DAILY_ERRORS_ORDER = ("project_id", "path", "date")
DAILY_ERRORS_KEY = ["project_id", "month", "date", "path", "traffic", "agent", "status"]

AGENTS = pa.schema(
    [
        _column("name", pa.string(), "name of the AI agent, as in hits.agent", required=True),
        _column("operator", pa.string(), "who runs it", required=True),
        _column("purpose", pa.string(), "training, search, assistant, agent or data", required=True),
        _column("pattern", pa.string(), "whole words of the user agent that identify it, in any case", required=True),
    ]
)
"""One row for each pattern: an agent with two patterns has two rows."""
