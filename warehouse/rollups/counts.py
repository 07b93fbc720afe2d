"""SQL of the counts of a rollup: counts of files of `hits`, and counts copied from the rollup before it, added up.

The counts by path take several statements, whose results are files. Each has one join, grouping or sort of texts,
because DuckDB spills one of them within its memory limit, but not always two. The functions are in the order
of the steps.
"""

from collections.abc import Sequence
from pathlib import Path

from warehouse.lake.delta_table import HITS_TABLE, File
from warehouse.lake.roots import Root
from warehouse.query import engine
from warehouse.rollups.coverage import Part
from warehouse.rollups.schema import (
    AGENT_COLUMNS,
    AGENT_KEY_COLUMNS,
    AGENT_PATHS_ORDER,
    DAYS_ORDER,
    DIMENSION_KEY,
    DIMENSION_VALUES,
    DIMENSIONS_ORDER,
    HAS_AGENT,
    PATH_VIEWS,
    PATH_VIEWS_ORDER,
    PATHS,
    PATHS_ORDER,
    PROFILE_VALUES,
    QUARTER_NUMBER,
    SOURCES,
    TRAFFIC,
    VIEW_VALUES,
    WITHOUT_AGENT,
)

_DAY = "day(date)::UTINYINT AS day"
_SOURCE = f"enum_code(source::ENUM {SOURCES})::UTINYINT AS source"
"""Index of the source. DuckDB raises an error for another source."""
_TRAFFIC = f"enum_code(traffic::ENUM {TRAFFIC})::UTINYINT AS traffic"
"""Index of the traffic. DuckDB raises an error for another traffic."""
_AGENT_COLUMNS = ", ".join(AGENT_COLUMNS)
_PROFILE = ", ".join(PROFILE_VALUES)
_OF_HITS = {name: f"hits.{value}" for name, value in PROFILE_VALUES.items()}
_SUMS = ", ".join(f"sum({traffic})::UINTEGER AS {traffic}" for traffic in TRAFFIC)


def count_paths(files: Sequence[File]) -> str:
    """Return the SELECT of the page views in files of `hits`."""
    ones = ", ".join(f"(traffic = '{traffic}')::UINTEGER AS {traffic}" for traffic in TRAFFIC)
    hits = f"SELECT project_id, {_DAY}, path, {_SOURCE}, {ones} FROM {_hits(files)}"
    return f"SELECT project_id, day, path, source, {_SUMS} FROM ({hits}) GROUP BY ALL"


def copy_paths(part: Part) -> str:
    """Return the SELECT of the page views of the valid days of a rollup."""
    return (
        f"SELECT project_id, day, path, source, {', '.join(TRAFFIC)} FROM {_parquet(part.rollup.days)} "
        f"JOIN {_with_path_ids(part.rollup.paths)} USING (project_id, path_id) WHERE day IN {_days(part)}"
    )


def count_agent_paths(files: Sequence[File]) -> str:
    """Return the SELECT of the page views by agents in files of `hits`."""
    hits = f"SELECT project_id, {_AGENT_COLUMNS}, {_DAY}, path, {_SOURCE}, {_TRAFFIC} FROM {_hits(files)}"
    return f"SELECT *, count(*)::UINTEGER AS views FROM ({hits}) WHERE {HAS_AGENT} GROUP BY ALL"


def copy_agent_paths(part: Part) -> str:
    """Return the SELECT of the page views by agents on the valid days of a rollup."""
    return (
        f"SELECT project_id, {_AGENT_COLUMNS}, day, path, source, traffic, views "
        f"FROM {_parquet(part.rollup.agent_paths)} "
        f"JOIN {_with_path_ids(part.rollup.paths)} USING (project_id, path_id) WHERE day IN {_days(part)}"
    )


def list_paths(counted: Sequence[Path]) -> str:
    """Return the SELECT of the distinct paths of each project, in the order of their ids."""
    return f"SELECT DISTINCT project_id, path FROM {_parquet(*counted)} ORDER BY {', '.join(PATHS_ORDER)}"


def replace_paths(counted: Sequence[Path], paths: Path) -> str:
    """Return the SELECT of the counts with path ids in place of the paths."""
    return f"SELECT * EXCLUDE (path) FROM {_parquet(*counted)} JOIN {_with_path_ids(paths)} USING (project_id, path)"


def days(cells: Path) -> str:
    """Return the SELECT of `days.parquet`."""
    return (
        f"SELECT {', '.join(DAYS_ORDER)}, {_SUMS} FROM {_parquet(cells)} GROUP BY {', '.join(DAYS_ORDER)} "
        f"ORDER BY {', '.join(DAYS_ORDER)}"
    )


def agent_paths(cells: Path) -> str:
    """Return the SELECT of `agent_paths.parquet`."""
    key = ", ".join(AGENT_PATHS_ORDER)
    return f"SELECT {key}, sum(views)::UINTEGER AS views FROM {_parquet(cells)} GROUP BY {key} ORDER BY {key}"


def count_profiles(files: Sequence[File]) -> str:
    """Return the SELECT of the distinct profiles in files of `hits`."""
    columns = ", ".join(f"{value} AS {name}" for name, value in PROFILE_VALUES.items())
    return f"SELECT DISTINCT {columns} FROM {_hits(files)}"


def copy_profiles(part: Part) -> str:
    """Return the SELECT of the profiles of the valid days of a rollup."""
    used = f"SELECT profile_id FROM {_parquet(part.rollup.path_views)} WHERE day IN {_days(part)}"
    return f"SELECT {_PROFILE} FROM {_with_profile_ids(part.rollup.profiles)} WHERE profile_id IN ({used})"


def list_profiles(counted: Sequence[Path]) -> str:
    """Return the SELECT of `profiles.parquet`."""
    return f"SELECT DISTINCT {_PROFILE} FROM {_parquet(*counted)} ORDER BY ALL"


def count_path_views(profiles: Path, files: Sequence[File]) -> str:
    """Return the SELECT of the page views in files of `hits`, with profile ids in place of the profiles."""
    is_profile = " AND ".join(f"{value} IS NOT DISTINCT FROM profiles.{name}" for name, value in _OF_HITS.items())
    values = ", ".join(f"hits.{name}" for name in VIEW_VALUES.values())
    return (
        f"SELECT project_id, path, {_DAY}, {QUARTER_NUMBER}::UTINYINT AS quarter, profile_id, {values} "
        f"FROM {_hits(files)} AS hits JOIN {_with_profile_ids(profiles)} AS profiles ON {is_profile}"
    )


def copy_path_views(profiles: Path, part: Part) -> str:
    """Return the SELECT of the page views of the valid days of a rollup, with the ids that profiles have now."""
    is_profile = " AND ".join(f"old.{name} IS NOT DISTINCT FROM new.{name}" for name in PROFILE_VALUES)
    new_ids = (
        f"(SELECT old.profile_id AS old_id, new.profile_id FROM {_with_profile_ids(part.rollup.profiles)} AS old "
        f"JOIN {_with_profile_ids(profiles)} AS new ON {is_profile})"
    )
    return (
        f"SELECT project_id, path, day, quarter, new_ids.profile_id, {', '.join(VIEW_VALUES.values())} "
        f"FROM {_parquet(part.rollup.path_views)} AS views JOIN {new_ids} AS new_ids ON views.profile_id = old_id "
        f"JOIN {_with_path_ids(part.rollup.paths)} USING (project_id, path_id) WHERE day IN {_days(part)}"
    )


def path_views(cells: Path) -> str:
    """Return the SELECT of `path_views.parquet`."""
    return f"SELECT {', '.join(PATH_VIEWS.names)} FROM {_parquet(cells)} ORDER BY {', '.join(PATH_VIEWS_ORDER)}"


def month_totals(days: Path, paths: Path) -> str:
    """Return the SELECT of `paths.parquet`, from `days.parquet` and the file of its paths."""
    totals = ", ".join(
        f"sum(if(source = {index}, {traffic}, 0))::UINTEGER AS {traffic}_{source}"
        for traffic in TRAFFIC
        for index, source in enumerate(SOURCES)
    )
    by_id = f"(SELECT project_id, path_id, {totals} FROM {_parquet(days)} GROUP BY project_id, path_id)"
    return (
        f"SELECT {', '.join(PATHS.names)} FROM {by_id} JOIN {_with_path_ids(paths)} USING (project_id, path_id) "
        f"ORDER BY {', '.join(PATHS_ORDER)}"
    )


def count_dimensions(files: Sequence[File], parts: Sequence[Part]) -> str:
    """Return the SELECT of `dimensions.parquet`."""
    key = ", ".join(("project_id", "dimension", "day", "value", *DIMENSION_KEY))
    hits = [
        f"SELECT project_id, '{name}' AS dimension, {_DAY}, {value} AS value, {_dimension_key(name)}, "
        f"count(*) AS views FROM {_hits(files)} GROUP BY ALL"
        for name, value in DIMENSION_VALUES.items()
    ]
    copied = [
        f"SELECT {key}, views FROM {_parquet(part.rollup.dimensions)} WHERE day IN {_days(part)}" for part in parts
    ]
    return (
        f"SELECT {key}, sum(views)::UINTEGER AS views FROM ({_union(*hits, *copied)}) GROUP BY ALL "
        f"ORDER BY {', '.join(DIMENSIONS_ORDER)}"
    )


def _dimension_key(dimension: str) -> str:
    """Return the columns by which the values of a dimension are counted, and null for the others."""
    nulls = AGENT_KEY_COLUMNS if dimension in WITHOUT_AGENT else ()
    return ", ".join(f"NULL::VARCHAR AS {name}" if name in nulls else name for name in DIMENSION_KEY)


def _with_path_ids(paths: Path | Root) -> str:
    """Return the subquery of a file of paths, in the order of their ids, with the column `path_id`."""
    rows = f"read_parquet({engine.path_literal(str(paths))}, file_row_number = true)"
    first = f"(SELECT project_id, min(file_row_number) AS first_row FROM {rows} GROUP BY project_id)"
    return (
        "(SELECT project_id, path, (file_row_number - first_row)::UINTEGER AS path_id "
        f"FROM {rows} JOIN {first} USING (project_id))"
    )


def _with_profile_ids(profiles: Path | Root) -> str:
    """Return the subquery of a file of profiles with the column `profile_id`."""
    rows = f"read_parquet({engine.path_literal(str(profiles))}, file_row_number = true)"
    return f"(SELECT {_PROFILE}, file_row_number::UINTEGER AS profile_id FROM {rows})"


def _hits(files: Sequence[File]) -> str:
    return engine.rows(HITS_TABLE, files) if files else engine.no_rows(HITS_TABLE)


def _parquet(*paths: Path | Root) -> str:
    return f"read_parquet([{', '.join(engine.path_literal(str(path)) for path in paths)}])"


def _union(*selects: str) -> str:
    return " UNION ALL ".join(selects)


def _days(part: Part) -> str:
    """Return the valid days of a part as a list of days of the month."""
    return f"({', '.join(str(int(day[-2:])) for day in sorted(part.days))})"
