"""Visitors and visits of rows of `hits`, as cells: one SQL for rollups and for days that no rollup counts.

A visitor counts once on each UTC day, at the first view of the day; by referrer, page or another value, once for each
value. A visit counts at its first view. It has the views of one visitor, source and UTC day, up to TIMEOUT_S apart.
Only people have visits. An event that the reader caused, from EARLY_S before the last view to TIMEOUT_S after it, makes
the visit active: it is no bounce. ENGAGEMENT of the last page, before the next visit, adds the time for which that page
was visible, at most TIMEOUT_S.

The set of a visitor (`sources`) has the bits of all views: see `columns.sources`. Any choice of sources and readers is
one mask, also the union of people and AI. A visitor has one agent and one device a day: of several, that of an AI agent
or bot, and the device of a person.
"""

from collections.abc import Collection, Iterable, Sequence

from warehouse.columns import evidence
from warehouse.columns.dimensions import (
    AGENT_KEY,
    BY_NAME,
    DIMENSIONS,
    OF_VISITS,
    VISITOR_MEASURES,
    VISITORS,
    each_measure,
)
from warehouse.columns.sources import BITS

TIMEOUT_S = 1_800
"""Maximum time between two views of a visit, in seconds."""
EARLY_S = 5
"""Time by which an event may precede the view of its page, in seconds: the script sends both at once."""
ENGAGEMENT = "engagement"
"""Name of the script's events with the time for which a page was visible (`ms`). Reports of events leave them out."""
DEVICE_KEY = ("browser", "os", "device")
OF_VISITOR = (*AGENT_KEY, *DEVICE_KEY)
"""Dimensions of which a visitor has one value a day."""
VALUES = tuple(each.name for each in DIMENSIONS if each.has_visitors)
"""Dimensions by whose values rollups count visitors and visits."""
_OF_VIEWS = tuple(name for name in VALUES if name not in OF_VISITS)
_TIMES = ("quarter", "second")
AGENT = (
    f"(hash({', '.join(BY_NAME[name].sql for name in AGENT_KEY)}) >> 1 | if(traffic = 'human', 0, 1::UBIGINT << 63))"
)
DEVICE = (
    f"(hash({', '.join(BY_NAME[name].sql for name in DEVICE_KEY)}) >> 1 | if(traffic = 'human', 1::UBIGINT << 63, 0))"
)
TIE = f"hash({', '.join(BY_NAME[name].sql for name in _OF_VIEWS if name != 'path')}, format)"
"""SQL expressions of the agent, of the device, and of the order of views of one instant and path. Of several agents and
devices of a visitor, the largest is chosen."""
_VIEWS = f"""
SELECT project_id, date AS day, visitor, source, traffic, ts, {BITS} AS sources, {AGENT} AS agent_key,
    {DEVICE} AS device_key, {TIE} AS tie{{columns}}
FROM {{rows}} WHERE visitor IS NOT NULL AND {{within}}
"""
_ENDS = f"""
    SELECT *, row_number() OVER visitor_views AS number,
        coalesce(epoch_us(ts) - epoch_us(lag(ts) OVER visitor_views) > {TIMEOUT_S}_000_000, true) AS is_first,
        coalesce(epoch_us(lead(ts) OVER visitor_views) - epoch_us(ts) > {TIMEOUT_S}_000_000, true) AS is_last
    FROM {{rows}} WHERE traffic = 'human'{{within}}
    WINDOW visitor_views AS (PARTITION BY project_id, {{day}}, visitor, source ORDER BY ts, path, {{tie}})
"""
_VISITS = f"""
SELECT * FROM (
    SELECT *, path AS entryPage, if(is_last, path, lead(path) OVER ends) AS exitPage,
        if(is_last, 1, lead(number) OVER ends - number + 1) AS views,
        epoch_us(if(is_last, ts, lead(ts) OVER ends)) AS ended_us,
        epoch_us(if(is_last, lead(ts) OVER ends, lead(ts, 2) OVER ends)) AS next_us
    FROM ({_ENDS.format(rows="{views}", within="", day="day", tie="tie")}) WHERE is_first OR is_last
    WINDOW ends AS (PARTITION BY project_id, day, visitor, source ORDER BY number)
) WHERE is_first
"""
_WITHOUT_EVENTS = "SELECT *, false AS is_active, (ended_us - epoch_us(ts)) // 1_000_000 AS seconds FROM viewed"
_VISIT = "project_id, day, visitor, source, number"
_WITH_EVENTS = f"""
SELECT viewed.*, coalesce(is_active, false) AS is_active,
    (ended_us - epoch_us(ts) + coalesce(visible_us, 0)) // 1_000_000 AS seconds
FROM viewed LEFT JOIN (
    SELECT {_VISIT}, bool_or(interactive AND at_us <= ended_us + {TIMEOUT_S}_000_000) AS is_active,
        max(least(ms * 1_000, at_us - ended_us, {TIMEOUT_S}_000_000))
            FILTER (ms > 0 AND at_us > ended_us AND sender = source AND page = exitPage) AS visible_us
    FROM viewed JOIN (
        SELECT project_id, date AS day, visitor, source AS sender, path AS page, epoch_us(ts) AS at_us, interactive,
            if(name = '{ENGAGEMENT}', TRY_CAST(props ->> 'ms' AS INTEGER), NULL)::BIGINT AS ms
        FROM {{events}} WHERE visitor IS NOT NULL AND {{within}}
    ) USING (project_id, day, visitor)
    WHERE at_us >= ended_us - {EARLY_S}_000_000 AND at_us < coalesce(next_us, at_us + 1) GROUP BY ALL
) USING ({_VISIT})
"""
_PAGED = f"""(
SELECT * EXCLUDE (number, is_first, is_last),
    last_value(if(is_first, path, NULL) IGNORE NULLS) OVER (of_visitor ROWS UNBOUNDED PRECEDING) AS entryPage,
    first_value(if(is_last, path, NULL) IGNORE NULLS) OVER (
        of_visitor ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS exitPage
FROM ({_ENDS.format(rows="{rows}", within=" AND visitor IS NOT NULL AND {within}", day="date", tie="path")})
WINDOW of_visitor AS (PARTITION BY project_id, date, visitor, source ORDER BY number))
"""
_NONE = each_measure("0 AS {name}", VISITOR_MEASURES[1:])
_KEYS = "SELECT DISTINCT {key} AS {name}_key, {columns} FROM {rows} WHERE visitor IS NOT NULL AND {within}"


def values_of(names: Iterable[str]) -> list[str]:
    """Return the dimensions of which a visitor may have several values on a day."""
    return [name for name in names if name not in {"day", *OF_VISITOR, *_TIMES}]


def cells(  # what, where and how
    rows: str,
    within: str,
    names: Collection[str],
    filtered: Collection[str],
    condition: str,
    evident: str | None = None,
    events: str | None = None,
) -> str:
    """Return the SELECT of the visitors and visits of rows, with some dimensions: a row for each of them.

    `within` is a condition on rows, and `condition` one on the values of dimensions, which are `filtered`. `evident`
    are the same rows with the column `evidence`, and `events` the events of their days.
    """
    values, times = values_of(names), [name for name in names if name in _TIMES]
    columns = dict.fromkeys(name for name in ("path", *values, *times) if name not in OF_VISITS) | dict.fromkeys(
        filtered
    )
    shown = "".join(f"{name}, " for name in names)
    return (
        f"WITH {_with(rows, within, [*columns], names, evident, events)} SELECT {shown}sources,"
        f" {each_measure('{name}', VISITOR_MEASURES)} FROM ({_both(values, times, condition)}){_joined(names)}"
    )


def each_visitor(
    rows: str, within: str, names: Collection[str], filtered: Collection[str], condition: str, evident: str | None
) -> str:
    """Return the SELECT of each visitor and day with some dimensions: day, visitor, the dimensions, and sources.

    A visitor has a row for each value of a dimension. The parameters have the same meaning as in `cells`.
    """
    values = values_of(names)
    columns = dict.fromkeys(name for name in ("path", *values) if name not in OF_VISITS) | dict.fromkeys(filtered)
    shown = "".join(f"{name}, " for name in names if name != "day")
    return (
        f"WITH {_with(rows, within, [*columns], names, evident)} SELECT day, visitor, {shown}sources"
        f" FROM ({_visitors(values, (), condition, 'visitor, ')}){_joined(names)}"
    )


def of_rollup(rows: str, within: str, evident: str, events: str | None) -> str:
    """Return the SELECT of the cells of the cube VISITORS: without a value, by quarter, and by each of VALUES."""
    branches = [
        _branch("", "NULL", _both((), ()), device="device_key"),
        _branch("quarter", "NULL", _both((), ("quarter",)), quarter="quarter"),
        _branch("path", "path", _visitors(("path",), ())),  # its visits are those of entryPage
        *(_branch(name, name, _both((name,), ())) for name in VALUES if name != "path"),
    ]
    shown = ", ".join(VISITORS.columns)
    return (
        f"WITH {_with(rows, within, [*_OF_VIEWS, 'quarter'], OF_VISITOR, evident, events)}"
        f" SELECT project_id, day(day)::UTINYINT AS day_of_month, {shown},"
        f" {each_measure('{name}::UINTEGER AS {name}', VISITOR_MEASURES)} FROM ({' UNION ALL '.join(branches)})"
        f"{_joined(OF_VISITOR)}"
    )


def of_views(rows: str, within: str) -> str:
    """Return the relation of the views of visits, with entry and exit pages, of rows of `hits` with `evidence`."""
    return _PAGED.format(rows=rows, within=within)


def _with(
    rows: str,
    within: str,
    columns: Sequence[str],
    names: Collection[str],
    evident: str | None,
    events: str | None = None,
) -> str:
    """Return the common table expressions: views, visits without and with events, agents, and devices.

    Agents and devices, for which the rows are read again, are left out if no column of theirs is in `names`.
    """
    named = "".join(f", {BY_NAME[name].sql} AS {name}" for name in columns)
    keys = (
        f", {name}s AS ({_KEYS.format(key=key, name=name, columns=_named(of_key), rows=rows, within=within)})"
        for name, key, of_key in _keys_of(names)
    )
    relation, unpaged = evident or evidence.unknown(rows), "views"
    if paged := [name for name in columns if name in OF_VISITS]:
        relation, unpaged = of_views(relation, within), f"(SELECT * EXCLUDE ({', '.join(paged)}) FROM views)"
    views = _VIEWS.format(columns=named, rows=relation, within=within)
    followed = _WITH_EVENTS.format(events=events, within=within) if events else _WITHOUT_EVENTS
    return (
        f"views AS MATERIALIZED ({views}), viewed AS MATERIALIZED ({_VISITS.format(views=unpaged)}),"
        f" visits AS MATERIALIZED ({followed}){''.join(keys)}"
    )


def _keys_of(names: Collection[str]) -> list[tuple[str, str, Sequence[str]]]:
    """Return what the keys of visitors name, agents and devices, if some of the columns are theirs."""
    both = (("agent", AGENT, AGENT_KEY), ("device", DEVICE, DEVICE_KEY))
    return [each for each in both if not {*each[2]}.isdisjoint(names)]


def _joined(names: Collection[str]) -> str:
    return "".join(f" LEFT JOIN {name}s USING ({name}_key)" for name, *_ in _keys_of(names))


def _named(names: Sequence[str]) -> str:
    return ", ".join(f"{BY_NAME[name].sql} AS {name}" for name in names)


def _both(values: Sequence[str], times: Sequence[str], condition: str = "true") -> str:
    """Return the SELECT of a row for each visitor, and for each visit."""
    columns = "".join(f"{name}, " for name in (*values, *times))
    visits = each_measure("({sql})::BIGINT", VISITOR_MEASURES[1:])
    return (
        f"{_visitors(values, times, condition)} UNION ALL"
        f" SELECT project_id, day, {columns}agent_key, device_key, sources, 0, {visits} FROM visits"
        f" WHERE {condition}"
    )


def _visitors(values: Sequence[str], times: Sequence[str], condition: str = "true", also: str = "") -> str:
    of, named = "visits" if {*values} & {*OF_VISITS} else "views", "".join(f"{name}, " for name in values)
    first = "".join(f"min({name}) AS {name}, " for name in times)
    return (
        f"SELECT project_id, day, {also}{named}{first}max(agent_key) AS agent_key, max(device_key) AS device_key,"
        f" bit_or(sources) AS sources, 1 AS visitors, {_NONE}"
        f" FROM {of} WHERE {condition} GROUP BY project_id, day, {named}visitor"
    )


def _branch(dimension: str, value: str, counted: str, device: str = "0::UBIGINT", quarter: str = "NULL") -> str:
    """Return the SELECT of the sums of visitors and visits with a value of a dimension."""
    sums = each_measure("sum({name}) AS {name}", VISITOR_MEASURES)
    return (
        f"SELECT project_id, day, '{dimension}' AS dimension, {value}::VARCHAR AS value, agent_key,"
        f" {device} AS device_key, {quarter}::UTINYINT AS quarter, sources, {sums}"
        f" FROM ({counted}) GROUP BY ALL"
    )
