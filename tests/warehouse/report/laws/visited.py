"""Model of visitors and visits: loops over a list of rows in plain Python."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.warehouse.report.laws import model, reference
from tests.warehouse.site import Row
from warehouse.columns.filters import Filters
from warehouse.report.cells import Scope

AGENT, DEVICE = ("agent", "operator", "purpose", "verification"), ("browser", "os", "device")
SETS = ("source", "evidence")
COLUMNS = ("human", "ai", "bot", "total", "visits", "bounces", "visit_seconds", "visit_views", "timed")
Counts = dict[tuple[Any, ...], dict[str, int]]


def counts(rows: Iterable[Row], scope: Scope, by: Sequence[str], events: Sequence[Row] = ()) -> Counts:
    """Return what `visitors.counts` returns, without rows of zeros."""
    everything = replace(scope, filters=Filters())
    known = model.with_pages(row for row in reference.matching(rows, everything) if row["visitor"] is not None)
    of_visits = [first for first in known if "views" in first and _has_values(first, scope.filters)]
    of_visitors = [row for row in known if _has_values(row, scope.filters)]
    if {*by} & model.OF_VISITS:
        of_visitors = of_visits
    counted: defaultdict[tuple[Any, ...], dict[str, int]] = defaultdict(lambda: dict.fromkeys(COLUMNS, 0))
    for seen in _by_visitor(of_visitors, by):
        reader = _reader(seen)
        of_sets = [each for each in by if each in SETS]
        for values in sorted({tuple(_value(row, each, row) for each in of_sets) for row in seen}):
            of = dict(zip(of_sets, values, strict=True))
            counting = [
                row
                for row in seen
                if all(_value(row, each, row) == value for each, value in of.items())
                and _is_counted(row, reader, scope.filters)
            ]
            kinds = {row["traffic"] for row in counting}
            key = tuple(of[each] if each in of else min(_value(row, each, reader) for row in seen) for each in by)
            for kind in kinds:
                counted[key][kind] += 1
            counted[key]["total"] += bool(kinds & {"human", "ai"})
    for first in of_visits:
        if _is_counted(first, first, scope.filters):
            row = counted[tuple(_value(first, each, first) for each in by)]
            row["visits"] += 1
            row["visit_views"] += first["views"]
            if first["source"] == "beacon":
                row["timed"] += 1
                followed = [each for each in events if _follows(each, first, scope)]
                row["bounces"] += first["views"] == 1 and not any(_is_active(each, first) for each in followed)
                visible = max((_visible(each, first) for each in followed), default=timedelta(0))
                row["visit_seconds"] += (first["ended"] - first["ts"] + visible) // timedelta(seconds=1)
    return {tuple(each[0] if each else None for each in key): row for key, row in counted.items() if any(row.values())}


def _follows(event: Row, visit: Row, scope: Scope) -> bool:
    """Return whether an event of the visitor is before the next visit, in the range of a scope."""
    is_in_range = scope.time_range.start <= event["ts"] < scope.time_range.end
    is_of_reader = model.of_visitor(event) == model.of_visitor(visit)
    return is_in_range and is_of_reader and (visit["next"] is None or event["ts"] < visit["next"])


def _is_active(event: Row, visit: Row) -> bool:
    """Return whether the reader caused an event in a visit of one view."""
    since_view = event["ts"] - visit["ended"]
    return event["interactive"] and timedelta(seconds=-5) <= since_view <= model.TIMEOUT


def _visible(event: Row, visit: Row) -> timedelta:
    """Return for how long the last page of a visit was visible, by an event of the script."""
    number = json.loads(event["props"] or "{}").get("ms", "")
    of_page = ("engagement", visit["source"], visit["exitPage"])
    if (event["name"], event["source"], event["path"]) != of_page or not number.isdecimal():
        return timedelta(0)
    visible = timedelta(milliseconds=int(number) if len(number) < 10 else 0)
    return min(visible, event["ts"] - visit["ended"], model.TIMEOUT)


def _by_visitor(rows: Iterable[Row], by: Sequence[str]) -> Iterable[list[Row]]:
    """Return the rows of each visitor and day, and of each value of dimensions that may vary within a day."""
    values = [each for each in by if each not in {*AGENT, *DEVICE, "day", "quarter", "second", *SETS}]
    groups = defaultdict(list)
    for row in rows:
        groups[model.of_visitor(row), *(_value(row, each, row) for each in values)].append(row)
    return groups.values()


def _reader(rows: Sequence[Row]) -> Row:
    """Return the agent and the device of a visitor: of an AI agent or bot, and of a person, if it was both."""
    machine = next((row for row in rows if row["traffic"] != "human"), rows[0])
    person = next((row for row in rows if row["traffic"] == "human"), rows[0])
    return {**machine, **{name: person[name] for name in DEVICE}}


def _value(row: Row, by: str, reader: Row) -> tuple[Any] | tuple[()]:
    """Return a value as a tuple, which is empty for null, so that values can be compared."""
    value = reference.value(reader if by in (*AGENT, *DEVICE) else row, by)
    return () if value is None else (value,)


def _has_values(row: Row, filters: Filters) -> bool:
    """Return whether a row matches the filters by values that may vary within a day."""
    chosen = {name: value for name, value in filters.items if name not in {*AGENT, *DEVICE, "traffic", *SETS}}
    return model.matches(row, Filters(**chosen))


def _is_counted(row: Row, reader: Row, filters: Filters) -> bool:
    """Return whether a row counts by its source, its kind of reader, and the agent and device of its visitor."""
    chosen = {name: value for name, value in filters.items if name in {*AGENT, *DEVICE}}
    if row["traffic"] not in filters.selected_traffic or not model.matches(reader, Filters(**chosen)):
        return False
    of_row = Filters(filters.policy, traffic=filters["traffic"], **{name: filters[name] for name in SETS})
    return model.matches(row, of_row)
