"""Check of a rollup against the files of `hits` that it counts, and of the ranking of paths against its rollups.

The expressions are written independently of `columns`, except for dimensions that are plain columns. Each query
compares two multisets in constant memory: by the sum of the hashes of their rows for each project and day. The hash of
a cell is multiplied by its measures.
"""

from collections.abc import Iterator, Mapping, Sequence

import duckdb

from warehouse.columns.dimensions import BY_NAME, CUBES, VISITORS, Cube
from warehouse.columns.visits import AGENT, DEVICE, TIE
from warehouse.lake.delta_table import File
from warehouse.plural import counted
from warehouse.query import engine
from warehouse.rollups.catalog import Part
from warehouse.rollups.ranked import Ranking
from warehouse.tables import HITS_TABLE

TRUTH = {
    "verification": "if(verification IS NULL AND traffic IN ('ai', 'bot'), 'not_checked', verification)",
    "sources": (
        "(CASE source WHEN 'beacon' THEN 1 WHEN 'server' THEN 2 WHEN 'log' THEN 4 END"
        " * if(coalesce(format, '') IN ('markdown', 'md', 'text/markdown'), 8, 1))::UTINYINT"
    ),
    "status": "CAST(status AS VARCHAR)",
    "quarter": "CAST(extract(hour FROM ts) * 4 + extract(minute FROM ts) // 15 AS UTINYINT)",
}
"""SQL expressions over the columns of `hits`. Other dimensions and measures are taken from the declaration."""
_DIFFERENCE = """
SELECT count(*), min(concat_ws(' ', project_id, 'day', day))
FROM (SELECT project_id, day, sum(number) AS difference FROM ({rows}) GROUP BY ALL) WHERE difference <> 0
"""
_DAYS = """
SELECT project_id, day(date) AS day, sum({true}) AS number FROM {hits} GROUP BY ALL
UNION ALL
SELECT project_id, day_of_month, -sum({stored}) FROM {cells} WHERE {is_valid} GROUP BY ALL
"""
_MONTH = """
SELECT project_id, 0 AS day, sum(({stored}) * if(day_of_month = 0, 1, -1)) AS number FROM {cells} GROUP BY ALL
"""


def find_difference(database: duckdb.DuckDBPyConnection, part: Part, files: Sequence[File]) -> str | None:
    """Return the first difference between the valid days of a rollup and `hits`, or None.

    `files` are the files of a snapshot of `hits`, for which `catalog.choose` returned the part.
    """
    names = {(day, name) for day in part.days for name in part.rollup.files[day]}
    covered = [file for file in files if (file.partition, file.path.rpartition("/")[2]) in names]
    with database.cursor() as cursor:
        for file, sql in _queries(part, engine.rows(HITS_TABLE, covered)):
            ((times, first),) = cursor.execute(_DIFFERENCE.format(rows=sql)).fetchall()
            if times:
                return f"{part.rollup.folder / file} is wrong {counted(times, 'time')}, the first: {first}"
    return None


def _queries(part: Part, hits: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each file, and the queries whose sums of numbers are 0 if it is right."""
    for cube in CUBES:
        for sql in _of_cube(part, cube, hits):
            yield cube.file, sql
    for sql in _of_cube(part, VISITORS, f"({_visitors(hits)})"):
        yield VISITORS.file, sql


def _of_cube(part: Part, cube: Cube, hits: str) -> Iterator[str]:
    stored = true = _number(cube.columns, {each.name: each.name for each in cube.measures})
    cells = _rows(part, cube.file)
    valid = ", ".join(str(int(day[-2:])) for day in part.days)
    is_valid = "day_of_month > 0" if part.is_whole else f"day_of_month IN ({valid})"  # what a reader counts
    if cube is not VISITORS:
        true = _number(
            [TRUTH.get(name, BY_NAME[name].sql) for name in cube.columns],
            {each.name: TRUTH.get(each.name, each.sql) for each in cube.measures},
        )
    yield _DAYS.format(true=true, hits=hits, stored=stored, cells=cells, is_valid=is_valid)
    if cube.has_months:
        yield _MONTH.format(stored=stored, cells=cells)


def _rows(part: Part, file: str) -> str:
    return _at(str(part.rollup.folder / file))


def _at(path: str) -> str:
    return f"read_parquet({engine.path_literal(path)}, hive_partitioning = false)"


def _number(columns: Sequence[str], measures: Mapping[str, str]) -> str:
    """Return the SQL of the number of a row. `measures` has the SQL of each measure."""
    return " + ".join(f"{_hash([*columns, repr(name)])} * ({sql})" for name, sql in measures.items())


def _hash(columns: Sequence[str]) -> str:
    return f"hash({', '.join(columns)})::HUGEINT"


_VALUES = {
    "channel": "channel",
    "referrerHost": "referrer_host",
    **{f"utm{name.capitalize()}": f"utm_{name}" for name in ("source", "medium", "campaign")},
    "country": "country",
    "language": "language",
}
_OF_VALUES = [f"{{'name': '{name}', 'value': {column}}}" for name, column in _VALUES.items()]
_DIMENSIONS = f"""[
    {{'name': '', 'value': NULL::VARCHAR}}, {{'name': 'quarter', 'value': NULL}}, {", ".join(_OF_VALUES)},
    {{'name': 'path', 'value': path}}
]"""
_PAGES = "[{'name': 'entryPage', 'value': path}, {'name': 'exitPage', 'value': last}]"


def _visitors(hits: str) -> str:
    """Return the SELECT of a row for each visitor and visit, with the columns and measures of the cube VISITORS.

    Only the choice among several agents or devices of a visitor is that of `columns`: AGENT, DEVICE and TIE.
    """
    return f"""
WITH seen AS (
    SELECT *, {TRUTH["sources"]}::UINTEGER * CASE traffic WHEN 'human' THEN 1 WHEN 'ai' THEN 64 ELSE 4096 END AS set,
        {TRUTH["quarter"]} AS quarter, {AGENT} AS agent_key, {DEVICE} AS device_key, {TIE} AS tie
    FROM {hits} WHERE visitor IS NOT NULL
), breaks AS (
    SELECT *, if(ts - lag(ts) OVER same <= INTERVAL 30 MINUTE, 0, 1) AS is_new FROM seen WHERE traffic = 'human'
    WINDOW same AS (PARTITION BY project_id, date, visitor, source ORDER BY ts, path, tie)
), numbered AS (
    SELECT *, sum(is_new) OVER (PARTITION BY project_id, date, visitor, source ORDER BY ts, path, tie) AS number,
    FROM breaks
), visits AS (
    SELECT project_id, date, visitor, unnest(arg_min(
            {{'path': path, {", ".join(f"'{each}': {each}" for each in _VALUES.values())}, 'quarter': quarter,
               'agent_key': agent_key, 'device_key': device_key, 'set': set}}, (ts, path, tie))),
        arg_max(path, (ts, path, tie)) AS last, count(*) AS views,
        (epoch_us(max(ts)) - epoch_us(min(ts))) // 1_000_000 AS seconds
    FROM numbered GROUP BY project_id, date, visitor, source, number
), seen_by_value AS (
    SELECT project_id, date, visitor, unnest({_DIMENSIONS}) AS of, quarter, agent_key, device_key, set FROM seen
    UNION ALL
    SELECT project_id, date, visitor, unnest({_PAGES}), quarter, agent_key, device_key, set FROM visits
), counted AS (
    SELECT project_id, date, of, min(quarter) AS quarter, max(agent_key) AS agent_key, max(device_key) AS device_key,
        bit_or(set) AS sources, 1 AS visitors, 0 AS visits, 0 AS bounces, 0 AS visit_seconds, 0 AS visit_views
    FROM seen_by_value GROUP BY project_id, date, visitor, of
    UNION ALL
    SELECT project_id, date, of, quarter, agent_key, device_key, set, 0, 1, if(views = 1, 1, 0), seconds, views
    FROM (SELECT *, unnest(({_DIMENSIONS}[:-2] || {_PAGES})) AS of FROM visits)
), agents AS (
    SELECT DISTINCT agent_key, agent, operator, purpose, {TRUTH["verification"]} AS verification FROM seen
), devices AS (SELECT DISTINCT device_key, browser, os, device FROM seen)
SELECT project_id, date, of.name AS dimension, of.value AS value, agent, operator, purpose, verification,
    if(of.name = '', browser, NULL) AS browser, if(of.name = '', os, NULL) AS os,
    if(of.name = '', device, NULL) AS device, if(of.name = 'quarter', quarter, NULL)::UTINYINT AS quarter, sources,
    visitors, visits, bounces, visit_seconds, visit_views
FROM counted LEFT JOIN agents USING (agent_key) LEFT JOIN devices USING (device_key)
"""


_OF_DAYS = ", ".join(["until_1::BIGINT", *(f"until_{day}::BIGINT - until_{day - 1}" for day in range(2, 32))])
_OF_PATH = "hash(path, sources, traffic)::HUGEINT"
_RANKED_DAYS = f"""
SELECT project_id, day, sum({_OF_PATH} * views) AS number
FROM (
    SELECT project_id, path, sources, traffic, unnest(range(1, 32)) AS day, unnest([{_OF_DAYS}]) AS views
    FROM {{ranked}} WHERE path IS NOT NULL
) GROUP BY ALL
UNION ALL
SELECT project_id, day_of_month, -sum({_OF_PATH} * views) FROM {{cells}} WHERE day_of_month > 0 GROUP BY ALL
"""
_RANKED_MONTHS = f"""
SELECT project_id, 0 AS day, sum({_OF_PATH} * "{{month}}") AS number FROM {{ranked}} WHERE path IS NOT NULL GROUP BY ALL
UNION ALL
SELECT project_id, 0, -sum({_OF_PATH} * views) FROM ({{cells}}) WHERE day_of_month > 0 GROUP BY ALL
"""
_ALL_PATHS = "SELECT project_id FROM {rows} GROUP BY project_id, sources, traffic HAVING {differs} ORDER BY ALL LIMIT 1"
_AFTER_RANK = """
SELECT coalesce(max(total), 0)
FROM (SELECT sum({views}) FILTER (traffic <> 'bot') AS total FROM {rows}
      WHERE project_id = ? AND rank >= ? GROUP BY rank)
"""


def find_ranking_fault(database: duckdb.DuckDBPyConnection, ranking: Ranking, parts: Sequence[Part]) -> str | None:
    """Return the first difference between a ranking and its rollups, or None, also if a rollup is gone."""
    folders = {part.rollup.month: part.rollup.folder for part in parts if ranking.has(part)}
    if folders.keys() != ranking.record.rollups.keys():
        return None
    cells = {month: _at(str(folder / "paths.parquet")) for month, folder in sorted(folders.items())}
    months = _at(ranking.months)
    with database.cursor() as cursor:
        for month, paths in cells.items():
            until = " UNION ALL ".join(f"FROM {each}" for name, each in cells.items() if name <= month)
            for file, sql in (
                (ranking.days(month), _RANKED_DAYS.format(ranked=_at(ranking.days(month)), cells=paths)),
                (ranking.months, _RANKED_MONTHS.format(month=month, ranked=months, cells=until)),
            ):
                ((times, first),) = cursor.execute(_DIFFERENCE.format(rows=sql)).fetchall()
                if times:
                    return f"{file} is wrong {counted(times, 'time')} in {month}, the first: {first}"
        columns = {ranking.months: [*cells]} | {
            ranking.days(month): [f"until_{day}" for day in range(1, 32)] for month in cells
        }
        for file, names in columns.items():
            differs = " OR ".join(f'sum(if(path IS NULL, -1, 1) * "{name}") <> 0' for name in names)
            for (project,) in cursor.execute(_ALL_PATHS.format(rows=_at(file), differs=differs)).fetchall():
                return f"{file}: the rows of rank 0 are not the sums of the paths of project {project}"
        return next(_wrong_bounds(cursor, ranking, {file: names[-1] for file, names in columns.items()}), None)


def _wrong_bounds(cursor: duckdb.DuckDBPyConnection, ranking: Ranking, columns: Mapping[str, str]) -> Iterator[str]:
    months = [*(ranking.days(month) for month in ranking.record.rollups), ranking.months]
    for project, of_steps in ranking.record.bounds.items():
        for step, bounds in zip(ranking.record.steps, of_steps, strict=False):
            for bound, file in zip(bounds, months, strict=True):
                sql = _AFTER_RANK.format(views=f'"{columns[file]}"', rows=_at(file))
                ((most,),) = cursor.execute(sql, [project, step]).fetchall()
                if most > bound:
                    yield f"{file}: a path of project {project} has {most} views after rank {step}, above {bound}"
