"""Check of a rollup against the files of `hits` that it counts, and of the ranking of paths against its rollups.

The expressions are written independently of `columns`, except for dimensions that are plain columns. Each query
compares two multisets in constant memory: by the sum of the hashes of their rows for each project and day. The hash of
a cell is multiplied by its measures.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import duckdb

from warehouse.columns.dimensions import BY_NAME, CUBES, DIMENSIONS, PAGES, VISITORS, Cube
from warehouse.columns.visits import AGENT, DEVICE, TIE
from warehouse.database.statements import texts
from warehouse.lake.delta_table import File
from warehouse.plural import counted
from warehouse.query import engine
from warehouse.rollups import catalog
from warehouse.rollups.catalog import Part
from warehouse.rollups.cubes import Beside, of_table
from warehouse.rollups.ranked import Ranking
from warehouse.tables import EVENTS_TABLE, HITS_TABLE, VISITOR_TABLES

TRUTH = {
    "verification": "if(verification IS NULL AND traffic IN ('ai', 'bot'), 'not_checked', verification)",
    "sources": (
        "(CASE source WHEN 'beacon' THEN 1 WHEN 'server' THEN 2 WHEN 'log' THEN 4 END"
        " * if(coalesce(format, '') IN ('markdown', 'md', 'text/markdown'), 8, 1)"
        " * CASE WHEN traffic = 'ai' THEN 1_073_741_824 WHEN traffic = 'bot' THEN 68_719_476_736 ELSE coalesce(weight,"
        " 16_777_216) END)::BIGINT"
    ),
    "status": "CAST(status AS VARCHAR)",
    "quarter": "CAST(extract(hour FROM ts) * 4 + extract(minute FROM ts) // 15 AS UTINYINT)",
}
"""SQL expressions over the columns of `hits`, and the `weight` of the evidence. Other dimensions and measures are taken
from the declaration."""
_SQL = texts(__file__)
_WITH_EVIDENCE = (
    "(FROM {hits} AS h LEFT JOIN truth ON traffic = 'human' AND of_project = project_id AND of_date = date"
    " AND of_visitor = visitor)"
)
_WITHOUT_EVIDENCE = "(SELECT *, NULL::BIGINT AS weight FROM {hits})"
_FOLDED = """(SELECT * REPLACE (
    ((sources >> 30) << 30) | (16_777_216 * ((sources | (sources >> 6) | (sources >> 12) | (sources >> 18)
        | (sources >> 24)) & 63)) AS sources) FROM {cells})
"""
"""Cells of a day whose evidence is out of date: all people are put into the set of people who are not measured."""
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


def find_difference(
    database: duckdb.DuckDBPyConnection, part: Part, files: Sequence[File], beside: Beside
) -> str | None:
    """Return the first difference between the valid days of a rollup and `hits`, or None.

    `files` of `hits` and those `beside` them are of one snapshot, for which `catalog.choose` returned the part. The
    evidence, bounces and durations of a day are compared if the rollup was written from the files `beside`.
    """
    stale = part.days & catalog.stale_days([part], chain(*beside.values()))
    with database.cursor() as cursor:
        for days, cells, hits in ((part.days - stale, "{cells}", _WITH_EVIDENCE), (stale, _FOLDED, _WITHOUT_EVIDENCE)):
            if not days:
                continue
            names = {(day, name) for day in days for name in part.rollup.files[day]}
            of_days = [file for file in files if (file.partition, file.path.rpartition("/")[2]) in names]
            rows, is_fresh = engine.rows(HITS_TABLE, of_days), hits is _WITH_EVIDENCE
            loads, events = (of_table(spec, of_days, beside) or engine.no_rows(spec) for spec in VISITOR_TABLES)
            if is_fresh:
                cursor.execute(_SQL["EVIDENCE"].format(hits=rows, loads=loads))
            for file, sql in _queries(part, days, hits.format(hits=rows), cells, events if is_fresh else None):
                ((times, first),) = cursor.execute(_DIFFERENCE.format(rows=sql)).fetchall()
                if times:
                    return f"{part.rollup.folder / file} is wrong {counted(times, 'time')}, the first: {first}"
    return None


def _queries(part: Part, days: Collection[str], hits: str, cells: str, events: str | None) -> Iterator[tuple[str, str]]:
    """Yield the name of each file, and the queries whose sums of numbers are 0 if it is right. Without `events`,
    bounces and durations are left out."""
    for cube in CUBES:
        for sql in _of_cube(part, days, cube, hits, cells):
            yield cube.file, sql
    sure = tuple(each for each in VISITORS.measures if events or each.name not in {"bounces", "visit_seconds"})
    compared = replace(VISITORS, measures=sure)
    for sql in _of_cube(part, days, compared, f"({_visitors(hits, events or engine.no_rows(EVENTS_TABLE))})", cells):
        yield VISITORS.file, sql


def _of_cube(part: Part, days: Collection[str], cube: Cube, hits: str, of: str) -> Iterator[str]:
    stored = true = _number(cube.columns, {each.name: each.name for each in cube.measures})
    cells = of.format(cells=_at(str(part.rollup.folder / cube.file)))
    valid = ", ".join(str(int(day[-2:])) for day in days)
    is_all = part.is_whole and len(days) == len(part.days)
    is_valid = "day_of_month > 0" if is_all else f"day_of_month IN ({valid})"  # what a reader counts
    if cube.name != VISITORS.name:
        true = _number(
            [TRUTH.get(name, BY_NAME[name].sql) for name in cube.columns],
            {each.name: TRUTH.get(each.name, each.sql) for each in cube.measures},
        )
    yield _DAYS.format(true=true, hits=hits, stored=stored, cells=cells, is_valid=is_valid)
    if cube.has_months:
        yield _MONTH.format(stored=stored, cells=cells)


def _at(path: str) -> str:
    return f"read_parquet({engine.path_literal(path)}, hive_partitioning = false)"


def _number(columns: Sequence[str], measures: Mapping[str, str]) -> str:
    """Return the SQL of the number of a row. `measures` has the SQL of each measure."""
    return " + ".join(f"hash({', '.join([*columns, repr(name)])})::HUGEINT * ({sql})" for name, sql in measures.items())


_VALUES = {each.name: each.sql for each in DIMENSIONS if each.has_visitors and each.name not in PAGES}
"""Columns of the values by which visits are counted, by dimension."""
_OF_VALUES = [f"{{'name': '{name}', 'value': {column}}}" for name, column in _VALUES.items()]
_DIMENSIONS = f"""[
    {{'name': '', 'value': NULL::VARCHAR}}, {{'name': 'quarter', 'value': NULL}}, {", ".join(_OF_VALUES)},
    {{'name': 'path', 'value': path}}
]"""
_PAGES = "[{'name': 'entryPage', 'value': path}, {'name': 'exitPage', 'value': last}]"

_FOLLOWED = """
FROM {events} AS e WHERE e.project_id = visit.project_id AND e.date = visit.date AND e.visitor = visit.visitor AND
"""
_DONE = f"""
if(views = 1 AND NOT EXISTS ({_FOLLOWED} e.interactive
    AND e.ts BETWEEN ended - INTERVAL 5 SECOND AND ended + INTERVAL 30 MINUTE), 1, 0) AS bounces,
(epoch_us(ended) - epoch_us(began) + coalesce((
    SELECT max(greatest(0, if(number > micros // 1_000, micros, number * 1_000))) FROM (
        SELECT TRY_CAST(props ->> 'ms' AS INTEGER)::BIGINT AS number,
            least(epoch_us(e.ts) - epoch_us(ended), 1_800_000_000) AS micros
        {_FOLLOWED} e.name = 'engagement' AND e.source = visit.source AND e.path = last AND e.ts > ended
            AND (following IS NULL OR e.ts < following)
    )
), 0)) // 1_000_000 AS seconds
"""


def _visitors(hits: str, events: str) -> str:
    """Return the SELECT of a row for each visitor and visit, with the columns and measures of the cube VISITORS.

    Only the choice among several agents or devices of a visitor is that of `columns`: AGENT, DEVICE and TIE.
    """
    values = ", ".join(f"'{each}': {each}" for each in _VALUES.values())
    keys = {"agent": AGENT, "device": DEVICE, "tie": TIE, "dimensions": _DIMENSIONS, "pages": _PAGES}
    done = _DONE.format(events=events)
    return _SQL["VISITORS"].format(**TRUTH, **keys, hits=hits, values=values, done=done)


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
