"""Rollups for tests, written row by row."""

from collections import Counter
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.rollups.coverage import Rollup
from warehouse.rollups.schema import AGENT_PATHS, DAYS, PATHS, SOURCES, TRAFFIC

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


def _month(day: date) -> str:
    return day.isoformat()[:7]
