"""Check of a rollup against the files of `hits` that it counts.

The SQL is independent of `counts`, whose results it checks. Each query adds the counts of one side and subtracts those
of the other: a group whose sum is not 0 is a difference. Paths are compared by numbers, 64 bits of their MD5,
for which the memory of the database suffices.
"""

from collections.abc import Iterator, Mapping, Sequence

import duckdb

from warehouse.lake.delta_table import HITS_TABLE, File
from warehouse.lake.roots import Root
from warehouse.plural import counted
from warehouse.query import engine
from warehouse.rollups import coverage
from warehouse.rollups.coverage import Part

_QUARTER = "CAST(extract(hour FROM ts) * 4 + extract(minute FROM ts) // 15 AS VARCHAR)"
_DIMENSIONS = {
    "total": "NULL",
    "referrerHost": "referrer_host",
    "utmSource": "utm_source",
    "browser": "browser",
    "os": "os",
    "device": "device",
    "format": "format",
    "status": "CAST(status AS VARCHAR)",
    "rule": "rule",
    "quarter": _QUARTER,
    "agentQuarter": _QUARTER,
}
_SOURCE = "['beacon', 'server', 'log'][source + 1]"
_KEY = "source, traffic, agent, operator, purpose, verification"
_COUNTED_BY = {"quarter": "source, traffic, NULL AS agent, NULL AS operator, NULL AS purpose, NULL AS verification"}
"""Columns of `hits` by which a dimension is counted, where they are not those of _KEY."""

_UNSORTED = """
SELECT count(*), min(project_id || ' ' || path)
FROM (SELECT project_id, path, lag(project_id) OVER () AS project_before, lag(path) OVER () AS path_before FROM {paths})
WHERE project_before > project_id OR (project_before = project_id AND path_before >= path)
"""
"""Windows without an order use the order of the file, and need no memory."""
_DIFFERENCES = """
SELECT count(*), min(name), arg_min(number, name)
FROM (SELECT concat_ws(' ', {name}) AS name, {path} AS number FROM ({rows}) GROUP BY {key} HAVING sum(n) <> 0)
"""
_NUMBER = "md5_number_lower(path)"
_PATH_OF = (
    f"SELECT path FROM (SELECT path FROM {{paths}} UNION ALL SELECT path FROM {{hits}}) WHERE {_NUMBER} = $number"
)
_PATH_IDS = f"""
(SELECT * REPLACE ({_NUMBER} AS path), file_row_number - first AS path_id
 FROM {{paths}} JOIN (SELECT project_id, min(file_row_number) AS first FROM {{paths}} GROUP BY ALL) USING (project_id))
"""
_TOTALS = f"""
SELECT project_id, path_id, name, views::BIGINT AS n
FROM (UNPIVOT (SELECT * EXCLUDE (path, file_row_number, first) FROM {{ids}})
      ON * EXCLUDE (project_id, path_id) INTO NAME name VALUE views)
WHERE views <> 0
UNION ALL
SELECT project_id, path_id, traffic || '_' || {_SOURCE} AS name, -views::BIGINT
FROM (UNPIVOT (FROM {{days}}) ON human, ai, bot INTO NAME traffic VALUE views) WHERE views <> 0
"""
_CELLS = f"""
SELECT project_id, day(date) AS day, {_NUMBER} AS path, source, traffic, 1 AS n FROM {{hits}}
UNION ALL
SELECT project_id, day, path, {_SOURCE}, traffic, -views::BIGINT
FROM (UNPIVOT (SELECT * FROM {{days}} WHERE day IN {{valid}}) ON human, ai, bot INTO NAME traffic VALUE views)
LEFT JOIN {{ids}} USING (project_id, path_id) WHERE views <> 0
"""
_AGENT_KEY = "project_id, purpose, operator, agent, day, source, traffic"
_AGENT_CELLS = f"""
SELECT project_id, purpose, operator, agent, day(date) AS day, {_NUMBER} AS path, source, traffic, 1 AS n FROM {{hits}}
WHERE coalesce(agent, operator, purpose) IS NOT NULL
UNION ALL
SELECT project_id, purpose, operator, agent, day, path, {_SOURCE}, ['human', 'ai', 'bot'][traffic + 1], -views::BIGINT
FROM (SELECT * FROM {{agent_paths}} WHERE day IN {{valid}}) LEFT JOIN {{ids}} USING (project_id, path_id)
"""
_NUMBERED_PROFILES = "(SELECT * RENAME (file_row_number AS profile_id) FROM {profiles})"
_PROFILE = "source, traffic, agent, operator, purpose, verification, browser, os, device, format"
_VIEW = f"hash({{quarter}}::INTEGER, {_PROFILE}, status::VARCHAR, rule, referrer_host, utm_source)::HUGEINT"
"""Fingerprint of a page view: the sum of those of several page views does not depend on their order."""
_VIEWS = f"""
SELECT project_id, day(date) AS day, {_NUMBER} AS path, {_VIEW.format(quarter=_QUARTER)} AS n FROM {{hits}}
UNION ALL
SELECT project_id, day, path, -{_VIEW.format(quarter="quarter")}
FROM (SELECT * FROM {{path_views}} WHERE day IN {{valid}})
LEFT JOIN {{ids}} USING (project_id, path_id) LEFT JOIN {{profile_ids}} USING (profile_id)
"""
_VALUES = f"""
SELECT project_id, day(date) AS day, {{value}} AS value, {{counted_by}}, 1 AS n FROM {{hits}}
UNION ALL
SELECT project_id, day, value, {_KEY}, -views::BIGINT FROM {{dimensions}}
WHERE dimension = '{{dimension}}' AND day IN {{valid}}
"""
_OTHER_DIMENSIONS = f"SELECT count(*), min(dimension) FROM {{dimensions}} WHERE dimension NOT IN {tuple(_DIMENSIONS)}"


def find_difference(database: duckdb.DuckDBPyConnection, part: Part, files: Sequence[File]) -> str | None:
    """Return the first difference of the valid days of a rollup from `hits`; None without one.

    `files` are those of a snapshot of `hits` for which `coverage.choose` returned the part.
    """
    with database.cursor() as cursor:
        names = _names(part, files)
        for file, sql in _queries(names):
            times, first, *number = cursor.execute(sql).fetchall()[0]
            if times:
                paths = cursor.execute(_PATH_OF.format(**names), {"number": number[0]}).fetchone() if number else None
                first = " ".join([first, *(paths or ())])
                return f"{part.rollup.folder / file} is wrong {counted(times, 'time')}, the first: {first}"
    return None


def _names(part: Part, files: Sequence[File]) -> dict[str, str]:
    """Return the relations of the queries by their names."""
    rollup = part.rollup
    covered = [file for file in files if file.partition in part.days and _name(file) in rollup.files[file.partition]]
    paths = _read(rollup.paths, "file_row_number = true")
    return {
        "paths": paths,
        "ids": _PATH_IDS.format(paths=paths),
        "days": _read(rollup.days),
        "agent_paths": _read(rollup.agent_paths),
        "profile_ids": _NUMBERED_PROFILES.format(profiles=_read(rollup.profiles, "file_row_number = true")),
        "path_views": _read(rollup.path_views),
        "dimensions": _read(rollup.dimensions),
        "hits": engine.rows(HITS_TABLE, covered),
        "valid": f"({', '.join(str(int(day[-2:])) for day in part.days)})",
    }


def _queries(names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the name of a file, and the query that returns the number of its differences, and the first one.

    If paths are compared, the number of its path is the third column.
    """
    yield coverage.PATHS, _UNSORTED.format(**names)
    yield coverage.PATHS, _differences("project_id, path_id, name", _TOTALS.format(**names))
    yield coverage.DAYS, _differences("project_id, day, source, traffic", _CELLS.format(**names), has_path=True)
    yield coverage.AGENT_PATHS, _differences(_AGENT_KEY, _AGENT_CELLS.format(**names), has_path=True)
    yield coverage.PATH_VIEWS, _differences("project_id, day", _VIEWS.format(**names), has_path=True)
    yield coverage.DIMENSIONS, _OTHER_DIMENSIONS.format(**names)
    for dimension, value in _DIMENSIONS.items():
        counted_by = _COUNTED_BY.get(dimension, _KEY)
        rows = _VALUES.format(**names, dimension=dimension, value=value, counted_by=counted_by)
        yield coverage.DIMENSIONS, _differences(f"project_id, day, value, {_KEY}", rows, f"'{dimension}', ")


def _differences(key: str, rows: str, prefix: str = "", *, has_path: bool = False) -> str:
    path, by = ("path", f"{key}, path") if has_path else ("NULL", key)
    return _DIFFERENCES.format(name=f"{prefix}{key}", path=path, key=by, rows=rows)


def _read(path: Root, option: str = "file_row_number = false") -> str:
    return f"read_parquet({engine.path_literal(str(path))}, hive_partitioning = false, {option})"


def _name(file: File) -> str:
    return file.path.rpartition("/")[2]
