"""The counts of a rollup, computed in plain Python from rows, and read from its files."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pyarrow.parquet as pq

from tests.warehouse.site import Row
from warehouse.rollups.coverage import Rollup

Cell = tuple[str, int, str, str, str]
"""Project, day of the month, path, source and traffic."""
Value = tuple[Any, ...]
"""Project, dimension, day, value, source, traffic, agent, operator and purpose."""

COLUMNS = {
    "referrerHost": "referrer_host",
    "utmSource": "utm_source",
    "browser": "browser",
    "os": "os",
    "device": "device",
    "format": "format",
    "rule": "rule",
}

PROFILE = (
    *("source", "traffic", "agent", "operator", "purpose", "verification"),
    *("browser", "os", "device", "format", "status", "rule"),
)


def cells(rows: Iterable[Row]) -> Counter[Cell]:
    return Counter((r["project_id"], utc(r).day, r["path"], r["source"], r["traffic"]) for r in rows)


def dimensions(rows: Iterable[Row]) -> Counter[Value]:
    counts: Counter[Value] = Counter()
    for row in rows:
        status = row["status"]
        quarter = str(utc(row).hour * 4 + utc(row).minute // 15)
        values = {
            "total": None,
            "status": None if status is None else str(status),
            "agentQuarter": quarter,
            **{name: row[column] for name, column in COLUMNS.items()},
        }
        key = tuple(row[name] for name in ("source", "traffic", "agent", "operator", "purpose", "verification"))
        counts.update((row["project_id"], name, utc(row).day, value, *key) for name, value in values.items())
        counts[row["project_id"], "quarter", utc(row).day, quarter, *key[:2], *(4 * [None])] += 1
    return counts


def agent_cells(rows: Iterable[Row]) -> Counter[Value]:
    """Return the views by project, purpose, operator, agent, day, path, source and traffic."""
    return Counter(
        (
            *(row[name] for name in ("project_id", "purpose", "operator", "agent")),
            utc(row).day,
            *(row[name] for name in ("path", "source", "traffic")),
        )
        for row in rows
        if any(row[name] is not None for name in ("purpose", "operator", "agent"))
    )


def stored_agent_cells(rollup: Rollup) -> Counter[Value]:
    """Return the agent cells of a rollup, after a check of the order of the file."""
    names: dict[str, list[str]] = {}
    for row in pq.read_table(rollup.paths).to_pylist():
        names.setdefault(row["project_id"], []).append(row["path"])
    rows = pq.read_table(rollup.agent_paths).to_pylist()
    places = [
        (
            row["project_id"],
            *((row[name] is None, row[name] or "") for name in ("purpose", "operator", "agent")),
            *(row[name] for name in ("day", "path_id", "source", "traffic")),
        )
        for row in rows
    ]
    assert places == sorted(set(places))
    return Counter(
        {
            (
                *(row[name] for name in ("project_id", "purpose", "operator", "agent", "day")),
                names[row["project_id"]][row["path_id"]],
                ("beacon", "server", "log")[row["source"]],
                ("human", "ai", "bot")[row["traffic"]],
            ): row["views"]
            for row in rows
        }
    )


def path_views(rows: Iterable[Row]) -> Counter[Value]:
    """Return the views by project, path, day, quarter, profile, referrer host and campaign."""
    return Counter(
        (
            *(row[name] for name in ("project_id", "path")),
            *(utc(row).day, utc(row).hour * 4 + utc(row).minute // 15),
            *(None if row[name] is None else str(row[name]) for name in PROFILE),
            *(row[name] for name in ("referrer_host", "utm_source")),
        )
        for row in rows
    )


def stored_path_views(rollup: Rollup) -> Counter[Value]:
    """Return the page views of a rollup, after a check of the order and the profiles of the files."""
    names: dict[str, list[str]] = {}
    for row in pq.read_table(rollup.paths).to_pylist():
        names.setdefault(row["project_id"], []).append(row["path"])
    profiles = [tuple(row[name] for name in PROFILE) for row in pq.read_table(rollup.profiles).to_pylist()]
    rows = pq.read_table(rollup.path_views).to_pylist()
    places = [tuple(row[name] for name in ("project_id", "path_id", "day", "quarter", "profile_id")) for row in rows]
    assert places == sorted(places)
    assert {row["profile_id"] for row in rows} == {*range(len(profiles))}
    assert len({*profiles}) == len(profiles)
    return Counter(
        (
            row["project_id"],
            names[row["project_id"]][row["path_id"]],
            *(row["day"], row["quarter"]),
            *profiles[row["profile_id"]],
            *(row["referrer_host"], row["utm_source"]),
        )
        for row in rows
    )


def utc(row: Row) -> datetime:
    instant: datetime = row["ts"].astimezone(UTC)
    return instant


def stored_cells(rollup: Rollup) -> Counter[Cell]:
    """Return the cells of a rollup, after a check of the month totals and of the order of both files."""
    paths, days = pq.read_table(rollup.paths).to_pylist(), pq.read_table(rollup.days).to_pylist()
    assert [(row["project_id"], row["path"].encode()) for row in paths] == sorted(
        {(row["project_id"], row["path"].encode()) for row in paths}
    )
    places = [(row["project_id"], row["day"], row["path_id"], row["source"]) for row in days]
    assert places == sorted(set(places))
    names: dict[str, list[str]] = {}
    for row in paths:
        names.setdefault(row["project_id"], []).append(row["path"])
    counts: Counter[Cell] = Counter()
    for row in days:
        path, source = names[row["project_id"]][row["path_id"]], ("beacon", "server", "log")[row["source"]]
        assert row["human"] + row["ai"] + row["bot"] > 0
        for traffic in ("human", "ai", "bot"):
            counts[row["project_id"], row["day"], path, source, traffic] += row[traffic]
    totals: Counter[tuple[str, str, str]] = Counter()
    for (project, _, path, source, traffic), views in counts.items():
        totals[project, path, f"{traffic}_{source}"] += views
    assert +totals == +Counter(
        {
            (row["project_id"], row["path"], name): views
            for row in paths
            for name, views in row.items()
            if name not in {"project_id", "path"}
        }
    )
    return +counts


def stored_dimensions(rollup: Rollup) -> Counter[Value]:
    """Return the counts of the dimensions of a rollup, after a check of the order of the file."""
    rows = pq.read_table(rollup.dimensions).to_pylist()
    places = [
        (r["project_id"], r["dimension"], r["day"], r["value"] is None, (r["value"] or "").encode()) for r in rows
    ]
    assert places == sorted(places)
    counts = Counter({tuple(value for name, value in row.items() if name != "views"): row["views"] for row in rows})
    assert len(counts) == len(rows)
    return counts
