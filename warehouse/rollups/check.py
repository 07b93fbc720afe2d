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
_REST = "split_part(split_part(substr(referrer, strpos(referrer, ':') + 3), '#', 1), '?', 1)"
_TAIL = f"rtrim(if(contains({_REST}, '/'), substr({_REST}, strpos({_REST}, '/')), ''), '/')"
_EVIDENCE = f"""
CREATE OR REPLACE TEMP TABLE truth AS
WITH human AS (FROM {{hits}} WHERE traffic = 'human' AND visitor IS NOT NULL),
logged AS (SELECT project_id, date, count(*) AS views FROM {{hits}} WHERE source = 'log' GROUP BY ALL),
fetched AS (SELECT project_id, date, sum(loads) AS loads FROM {{loads}} GROUP BY ALL),
with_assets AS (
    SELECT project_id, date FROM fetched LEFT JOIN logged USING (project_id, date)
    WHERE loads > 0 AND loads * 99 >= coalesce(views, 0)
), links AS (
    SELECT project_id, date, visitor, ts, {_TAIL} AS tail FROM human
    WHERE channel IS NULL AND referrer_host IS NOT NULL AND referrer[strpos(referrer, ':'):][:3] = '://'
    UNION ALL SELECT project_id, date, visitor, ts, '' FROM human
    WHERE channel IS NULL AND referrer_host IS NOT NULL AND referrer[strpos(referrer, ':'):][:3] <> '://'
), linked AS (
    SELECT *, CASE WHEN ends_with(tail, '/index.html') THEN tail[:-12]
        WHEN ends_with(tail, '/index.htm') THEN tail[:-11] ELSE tail END AS page FROM links
)
SELECT project_id AS of_project, date AS of_date, visitor AS of_visitor, CASE
    WHEN EXISTS (FROM human AS h WHERE h.project_id = p.project_id AND h.date = p.date AND h.visitor = p.visitor
        AND h.source = 'beacon') THEN 1
    WHEN EXISTS (FROM {{loads}} AS l WHERE l.project_id = p.project_id AND l.date = p.date AND l.visitor = p.visitor)
        AND EXISTS (FROM with_assets AS w WHERE w.project_id = p.project_id AND w.date = p.date) THEN 64
    WHEN EXISTS (
        FROM linked AS l JOIN human AS h ON h.project_id = l.project_id AND h.date = l.date AND h.visitor = l.visitor
        WHERE l.project_id = p.project_id AND l.date = p.date AND l.visitor = p.visitor
        AND h.path = if(l.page = '', '/', l.page) AND h.ts < l.ts) THEN 4_096
    WHEN EXISTS (FROM with_assets AS w WHERE w.project_id = p.project_id AND w.date = p.date) THEN 262_144
    ELSE 16_777_216 END AS weight
FROM (SELECT DISTINCT project_id, date, visitor FROM human) AS p
"""
"""Statement that creates the table of the weights of the evidence of visitors. It shares no expression with reports."""
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
                cursor.execute(_EVIDENCE.format(hits=rows, loads=loads))
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
    return f"""
WITH seen AS (
    SELECT *, {TRUTH["sources"]} AS set,
        {TRUTH["quarter"]} AS quarter, {AGENT} AS agent_key, {DEVICE} AS device_key, {TIE} AS tie
    FROM {hits} WHERE visitor IS NOT NULL
), breaks AS (
    SELECT *, if(ts - lag(ts) OVER same <= INTERVAL 30 MINUTE, 0, 1) AS is_new FROM seen WHERE traffic = 'human'
    WINDOW same AS (PARTITION BY project_id, date, visitor, source ORDER BY ts, path, tie)
), numbered AS (
    SELECT *, sum(is_new) OVER (PARTITION BY project_id, date, visitor, source ORDER BY ts, path, tie) AS number,
    FROM breaks
), grouped AS (
    SELECT project_id, date, visitor, unnest(arg_min(
            {{'path': path, {", ".join(f"'{each}': {each}" for each in _VALUES.values())}, 'quarter': quarter,
               'agent_key': agent_key, 'device_key': device_key, 'set': set}}, (ts, path, tie))),
        arg_max(path, (ts, path, tie)) AS last, count(*) AS views, min(ts) AS began, max(ts) AS ended, source
    FROM numbered GROUP BY project_id, date, visitor, source, number
), visits AS (
    SELECT *, {_DONE.format(events=events)} FROM (SELECT *, lead(began) OVER others AS following FROM grouped
        WINDOW others AS (PARTITION BY project_id, date, visitor, source ORDER BY began)) AS visit
), seen_by_value AS (
    SELECT project_id, date, visitor, unnest({_DIMENSIONS}) AS of, quarter, agent_key, device_key, set FROM seen
    UNION ALL
    SELECT project_id, date, visitor, unnest({_PAGES}), quarter, agent_key, device_key, set FROM visits
), counted AS (
    SELECT project_id, date, of, min(quarter) AS quarter, max(agent_key) AS agent_key, max(device_key) AS device_key,
        bit_or(set) AS sources, 1 AS visitors, 0 AS visits, 0 AS bounces, 0 AS visit_seconds, 0 AS visit_views
    FROM seen_by_value GROUP BY project_id, date, visitor, of
    UNION ALL
    SELECT project_id, date, of, quarter, agent_key, device_key, set, 0, 1, bounces, seconds, views
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
