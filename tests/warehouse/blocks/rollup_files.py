"""Rollups for tests, written row by row."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.warehouse.site import Row
from warehouse.columns.sources import AGENT_PATHS, DAYS, PATH_VIEWS, PATHS, PROFILES, SOURCES, TRAFFIC
from warehouse.rollups.coverage import Rollup

Key = tuple[str, date, str, int, int]
"""Project, day, path, source and traffic; the last two as indices in SOURCES and TRAFFIC."""
Counted = Mapping[Key, int]


Agent = tuple[str | None, str | None, str | None]
"""Purpose, operator and agent."""
CountedByAgent = Mapping[tuple[*Key, Agent], int]


def write(folder: Path, month: str, counted: Counted, by_agent: CountedByAgent | None = None) -> Rollup:
    """Write the rollup of a month, row by row. `by_agent` are views that `counted` has too."""
    path_rows, day_rows, agent_rows = [], [], []
    for name in sorted({key[0] for key in counted}):
        views = {key[1:]: number for key, number in counted.items() if key[0] == name and _month(key[1]) == month}
        paths = sorted({path for _, path, _, _ in views}, key=str.encode)
        totals = Counter[tuple[str, str]]()
        cells: dict[tuple[int, int, int], Counter[str]] = {}
        for (day, path, source, traffic), number in views.items():
            totals[path, f"{TRAFFIC[traffic]}_{SOURCES[source]}"] += number
            cells.setdefault((day.day, paths.index(path), source), Counter())[TRAFFIC[traffic]] += number
        path_rows += [
            {"project_id": name, "path": path, **{column: totals[path, column] for column in PATHS.names[2:]}}
            for path in paths
        ]
        day_rows += [
            {"project_id": name, "day": day, "path_id": id, "source": source, **{each: cell[each] for each in TRAFFIC}}
            for (day, id, source), cell in sorted(cells.items())
        ]
        agent_rows += [
            {
                "project_id": name,
                **dict(zip(("purpose", "operator", "agent"), agent, strict=True)),
                "day": day.day,
                "path_id": paths.index(path),
                "source": source,
                "traffic": traffic,
                "views": number,
            }
            for (project, day, path, source, traffic, agent), number in (by_agent or {}).items()
            if project == name and _month(day) == month
        ]
    folder.mkdir(parents=True)
    rollup = Rollup(month, folder, {str(key[1]): frozenset() for key in counted if _month(key[1]) == month}, 0)
    pq.write_table(pa.Table.from_pylist(path_rows, PATHS), rollup.paths, row_group_size=3)
    pq.write_table(pa.Table.from_pylist(day_rows, DAYS), rollup.days, row_group_size=3)
    pq.write_table(pa.Table.from_pylist(agent_rows, AGENT_PATHS), rollup.agent_paths, row_group_size=3)
    return rollup


def write_views(rollup: Rollup, rows: Sequence[Row]) -> None:
    """Write the profiles and the page views of a rollup, whose paths are those of the rows."""
    profiles = sorted({_profile(row) for row in rows}, key=str)
    views = []
    for name in sorted({row["project_id"] for row in rows}):
        of_project = [row for row in rows if row["project_id"] == name]
        paths = sorted({row["path"] for row in of_project}, key=str.encode)
        views += sorted(
            (name, paths.index(row["path"]), row["ts"].day, row["ts"].hour * 4, profiles.index(_profile(row)))
            for row in of_project
        )
    columns = [dict(zip(PROFILES.names, profile, strict=True)) for profile in profiles]
    pq.write_table(pa.Table.from_pylist(columns, PROFILES), rollup.profiles)
    listed = [dict(zip(PATH_VIEWS.names, (*view, None, None), strict=True)) for view in views]
    pq.write_table(pa.Table.from_pylist(listed, PATH_VIEWS), rollup.path_views, row_group_size=3)


def _profile(row: Row) -> tuple[str | None, ...]:
    return tuple(None if row[name] is None else str(row[name]) for name in PROFILES.names)


def _month(day: date) -> str:
    return day.isoformat()[:7]
