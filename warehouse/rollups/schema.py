"""Columns of the six files of a rollup, and the dimensions that it counts.

The path id of a row of `paths.parquet` is its index among the rows of its project, so that ids have the order of paths.
"""

import pyarrow as pa

TRAFFIC = ("human", "ai", "bot")
"""Values of `hits.traffic`."""
SOURCES = ("beacon", "server", "log")
"""Values of `hits.source`. A rollup stores the index of a source."""
QUARTER_S = 900
"""Length of a quarter of an hour, in seconds."""
QUARTER_NUMBER = f"((epoch_us(ts) - epoch_us(date::TIMESTAMP)) // {QUARTER_S * 1_000_000})::INTEGER"
QUARTER = f"{QUARTER_NUMBER}::VARCHAR"

DIMENSION_VALUES = {
    "total": "NULL::VARCHAR",
    "referrerHost": "referrer_host",
    "utmSource": "utm_source",
    "browser": "browser",
    "os": "os",
    "device": "device",
    "format": "format",
    "status": "status::VARCHAR",
    "rule": "rule",
    "quarter": QUARTER,
    "agentQuarter": QUARTER,
}
"""SQL expression of a dimension's value over the columns of `hits`, by the name of the dimension.

`total` has one value, null. `quarter` and `agentQuarter` are the quarter of an hour of the UTC day, "0" to "95".
"""
DIMENSION_KEY = ("source", "traffic", "agent", "operator", "purpose", "verification")
"""Columns of `hits` by which each value of a dimension is counted, so that a report can filter by them."""
AGENT_COLUMNS = ("agent", "operator", "purpose")
"""Columns of DIMENSION_KEY by which AGENT_PATHS counts."""
AGENT_KEY_COLUMNS = (*AGENT_COLUMNS, "verification")
"""Columns of DIMENSION_KEY that are null in the dimensions WITHOUT_AGENT."""
WITHOUT_AGENT = ("quarter",)
"""Dimensions that are not counted by AGENT_KEY_COLUMNS.

A month of 8.5 million hits has 0.13 million rows of `quarter`, but 0.68 million of `agentQuarter`.
"""

PATHS = pa.schema(
    [
        ("project_id", pa.string()),
        ("path", pa.string()),
        *((f"{traffic}_{source}", pa.uint32()) for traffic in TRAFFIC for source in SOURCES),
    ]
)
"""Page views of the month by path, for each traffic and source. Sorted by PATHS_ORDER; texts in the order of bytes."""
PATHS_ORDER = ("project_id", "path")

DAYS = pa.schema(
    [
        ("project_id", pa.string()),
        ("day", pa.uint8()),  # of the month
        ("path_id", pa.uint32()),
        ("source", pa.uint8()),  # index in SOURCES
        *((traffic, pa.uint32()) for traffic in TRAFFIC),
    ]
)
"""Page views by day, path and source. Sorted by DAYS_ORDER."""
DAYS_ORDER = ("project_id", "day", "path_id", "source")

PROFILE_VALUES = {
    **{name: name for name in DIMENSION_KEY},
    **{name: DIMENSION_VALUES[name] for name in ("browser", "os", "device", "format", "status", "rule")},
}
"""SQL expression of a column of a profile over the columns of `hits`, by the name of the column.

A profile has the columns of a page view with few distinct combinations: 1,000 in a month of 8.4 million generated hits.
"""
PROFILES = pa.schema([(name, pa.string()) for name in PROFILE_VALUES])
"""Distinct profiles of the month, of all projects. The id of a profile is the index of its row."""

VIEW_VALUES = {"referrerHost": "referrer_host", "utmSource": "utm_source"}
"""Columns of `hits` that a page view has beside its profile, by the name of their dimension."""
PATH_VIEWS = pa.schema(
    [
        ("project_id", pa.string()),
        ("path_id", pa.uint32()),
        ("day", pa.uint8()),  # of the month
        ("quarter", pa.uint8()),  # of an hour of the UTC day, 0 to 95
        ("profile_id", pa.uint32()),
        *((name, pa.string()) for name in VIEW_VALUES.values()),
    ]
)
"""One row for each page view. Sorted by PATH_VIEWS_ORDER, so that the rows of a path are in few row groups."""
PATH_VIEWS_ORDER = ("project_id", "path_id", "day", "quarter", "profile_id")

HAS_AGENT = " OR ".join(f"{name} IS NOT NULL" for name in AGENT_COLUMNS)
"""SQL condition of the hits that AGENT_PATHS counts."""
AGENT_PATHS = pa.schema(
    [
        ("project_id", pa.string()),
        *((name, pa.string()) for name in reversed(AGENT_COLUMNS)),
        ("day", pa.uint8()),  # of the month
        ("path_id", pa.uint32()),
        ("source", pa.uint8()),  # index in SOURCES
        ("traffic", pa.uint8()),  # index in TRAFFIC
        ("views", pa.uint32()),
    ]
)
"""Page views by AI agents and named bots, by day, path and source. Sorted by AGENT_PATHS_ORDER; null comes last."""
AGENT_PATHS_ORDER = tuple(name for name in AGENT_PATHS.names if name != "views")
"""Order of the rows. An agent has mostly one purpose and one operator: the rows of each are in few row groups."""

DIMENSIONS = pa.schema(
    [
        ("project_id", pa.string()),
        ("dimension", pa.string()),
        ("day", pa.uint8()),  # of the month
        ("value", pa.string()),
        *((name, pa.string()) for name in DIMENSION_KEY),
        ("views", pa.uint32()),
    ]
)
"""Page views by day and value of each dimension. Sorted by DIMENSIONS_ORDER; null comes last."""
DIMENSIONS_ORDER = ("project_id", "dimension", "day", "value", *DIMENSION_KEY)
