"""Events are the same as in plain Python: by name, column and property, of stored and waiting events."""

import json
from collections import defaultdict
from functools import partial
from itertools import product
from typing import Any

import pytest

from tests.warehouse.site import DAY, NOON, Row, Site, event, loads, view
from warehouse.columns.filters import Filters
from warehouse.control.policy import Period, Periods
from warehouse.errors import TooManyViews
from warehouse.query import engine
from warehouse.query.time_range import FIRST
from warehouse.report.audience import visitors
from warehouse.report.audience.events import ChosenEvents
from warehouse.report.reports import Reports
from warehouse.report.results import Query

READERS = [
    {"traffic": "human", "visitor": 1},
    {"traffic": "human", "visitor": 2},
    {"traffic": "human", "visitor": None},
    {"traffic": "ai", "agent": "GPTBot", "visitor": 3},
    {"traffic": "ai", "agent": "ClaudeBot", "visitor": None},
    {"traffic": "bot", "agent": "curl", "visitor": 4},
    {"traffic": "bot", "agent": "GPTBot", "visitor": 5},
]
PROPS = [None, {"plan": "pro", "a/b~c": "x"}, {"plan": "free", "0": "y"}]
EVENTS: list[Row] = [
    event(
        name, NOON - days * DAY, path=path, source=source, **reader, props=None if props is None else json.dumps(props)
    )
    for number, (name, days, path, source, reader, props) in enumerate(
        product(["Signup", "File Download", "engagement"], [0, 1, 9], ["/a", "/b"], ["log", "server"], READERS, PROPS)
    )
    if number % 7 and number % 5
]


def expected(query: Query, chosen: ChosenEvents) -> set[tuple[Any, ...]]:
    of = defaultdict(list)
    filters = query.filters
    for row in EVENTS:
        if (
            chosen.name in {None, row["name"]}
            and row["name"] != "engagement"
            and query.start <= row["ts"] < (query.end or query.now)
            and row["traffic"] in ({filters["traffic"]} if filters["traffic"] else {"human", "ai"})
            and filters["source"] in {None, row["source"]}
            and filters["path"] in {None, row["path"]}
            and (chosen.agents is None or (row["traffic"] == "ai" and row["agent"] in chosen.agents))
        ):
            props = json.loads(row["props"] or "{}")
            value = row[chosen.by] if chosen.by in {"path", "agent", "source"} else props.get(chosen.by)
            of[row["name"], value if chosen.by else None, row["traffic"]].append(row)
    return {
        (*key, len(rows), len({(row["ts"].date(), row["visitor"]) for row in rows if row["visitor"]}) or None)
        for key, rows in of.items()
    }


def test_events_are_those_of_plain_python(site: Site, reports: Reports) -> None:
    half = len(EVENTS) // 2
    site.post_events(*EVENTS[:half], event(project_id="another"))
    site.load()
    site.post_events(*EVENTS[half:])
    cases = (
        (FIRST, {}, None, None),
        (NOON - 2 * DAY, {"traffic": "ai"}, "Signup", None),
        (NOON - DAY, {"source": "log", "path": "/a"}, None, None),
        (FIRST, {"traffic": "bot"}, "File Download", None),
        (FIRST, {}, None, ("GPTBot",)),
        (FIRST, {}, None, ()),
        (FIRST, {"traffic": "bot"}, None, ("GPTBot",)),
        (FIRST, {}, "engagement", None),
    )
    dimensions = ("", "path", "agent", "source", "plan", "a/b~c", "0", "none")
    for by, (start, values, name, agents) in product(dimensions, cases):
        query, chosen = Query("site", start, None, Filters(**values), NOON + DAY), ChosenEvents(name, by, agents)
        rows = reports.events(reports.take(), query, chosen).drop_columns(["agents"]).to_pylist()
        assert {tuple(row.values()) for row in rows} == expected(query, chosen)
        assert rows == sorted(
            rows,
            key=lambda row: (-row["events"], row["name"], row["value"] is None, row["value"] or "", row["traffic"]),
        )


OF_OPENAI = (("GPTBot", "OpenAI"),)
VIEWS: list[Row] = [
    {"visitor": 1, "channel": "Search", "country": "DE", "device": "phone"},
    {"visitor": 1, "channel": None, "country": "DE", "device": "phone"},
    {"visitor": 2, "channel": "Search", "country": "FR"},
    {"visitor": 2, "channel": "Social", "country": "FR"},
    {"visitor": 3, "channel": None, "country": "DE"},
    {"visitor": 4, "channel": "Email", "country": "DE", "ts": NOON - DAY},
    {"visitor": None, "channel": "Search", "country": "DE"},
    {"visitor": 7, "channel": None, "country": None, "traffic": "ai", "agent": "GPTBot", "operator": "OpenAI"},
]


def test_events_have_the_values_and_filters_of_their_visitors_views_of_the_day(site: Site) -> None:
    """Visitor 5 has no view, 4 has one on another day, and 7 is also a person, without a view.

    The agents of 8 and of no visitor have no view: they are of an operator all the same, and an impostor is of none.
    """
    person = {"traffic": "human", "source": "beacon"}
    views = [view(**{**person, **each}) for each in VIEWS]
    events = [event(**person, visitor=visitor, path="/thanks") for visitor in (1, 1, 2, 3, 4, 5, 7, None)]
    events.append(event(traffic="ai", agent="GPTBot", operator="OpenAI", source="beacon", visitor=7, path="/a.pdf"))
    events += [event(traffic="ai", agent="GPTBot", visitor=visitor, path="/a.zip") for visitor in (8, None)]
    events += [event(traffic=kind, agent="Other", path="/b.zip") for kind in ("ai", "bot")]
    events.append(event(traffic="bot", agent="GPTBot", visitor=9, path="/b.zip"))
    cases: list[tuple[str, dict[str, str], dict[Any, tuple[int, int]]]] = [
        ("channel", {}, {"Search": (3, 2), "Social": (1, 1), None: (9, 6)}),
        ("country", {}, {"DE": (3, 2), "FR": (1, 1), None: (8, 5)}),
        ("country", {"channel": "Search"}, {"DE": (2, 1), "FR": (1, 1)}),
        ("", {"channel": "Search"}, {None: (3, 2)}),
        ("", {"channel": "Search", "country": "DE"}, {None: (2, 1)}),
        ("", {"channel": "Search", "path": "/a.pdf"}, {}),
        ("path", {"country": "DE", "path": "/thanks"}, {"/thanks": (3, 2)}),
        ("props.channel", {"channel": "Email"}, {}),
        ("device", {"device": "phone"}, {"phone": (2, 1)}),
        ("operator", {"traffic": "ai"}, {"OpenAI": (3, 2), None: (1, 0)}),
        ("operator", {"traffic": "ai", "path": "/a.zip"}, {"OpenAI": (2, 1)}),
        ("operator", {"traffic": "ai", "agent": "GPTBot", "device": "phone"}, {}),
        ("operator", {"traffic": "bot"}, {None: (2, 1)}),
        ("traffic", {}, {"human": (8, 6), "ai": (4, 2)}),
        ("traffic", {"channel": "Search"}, {"human": (3, 2)}),
        ("evidence", {"traffic": "human", "evidence": "script"}, {"script": (4, 3)}),
    ]
    site.post(*views[:4])
    site.post_events(*events[:4])
    site.load()
    site.post(*views[4:])
    site.post_events(*events[4:])
    reports = site.reports(partial(_policy, ()))
    for by, values, expected in cases:
        query = Query("site", NOON - 2 * DAY, None, Filters(**values), NOON + DAY)
        counted: dict[Any, tuple[int, int]] = {}
        for row in reports.events(reports.take(), query, ChosenEvents(by=by, by_agent=OF_OPENAI)).to_pylist():
            events_, visitors = counted.get(row["value"], (0, 0))
            counted[row["value"]] = events_ + row["events"], visitors + (row["visitors"] or 0)
        assert counted == expected, (by, values)


def test_events_by_views_are_slow_and_limited_by_the_views_of_the_project(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.post(*(view(visitor=number, country="DE") for number in range(40)), view(project_id="another"))
    site.post_events(event(visitor=1))
    site.load()
    monkeypatch.setattr(visitors, "PART_ROWS", 10)
    reports = site.reports(partial(_policy, ()))
    caller = engine.Caller(accepts_slow=True)
    token = engine.CALLER.set(caller)

    def count(by: str, views_max: int, **filters: str) -> int:
        monkeypatch.setattr(visitors, "VIEWS_MAX", views_max)
        query = Query("site", FIRST, None, Filters(**filters), NOON + DAY)
        return sum(reports.events(reports.take(), query, ChosenEvents(by=by))["events"].to_pylist())

    assert count("country", 40) == count("traffic", 39, path="/a") == 1
    for by, filters in (("country", {}), ("plan", {"country": "DE"}), ("path", {"country": "DE"})):
        with pytest.raises(TooManyViews, match="the range has 40 views of the project, .* a report by country is 39"):
            count(by, 39, **filters)
    assert not caller.is_slow
    monkeypatch.setattr(visitors, "FAST_VIEWS_MAX", 39)
    assert count("path", 40) == 1
    assert not caller.is_slow
    assert count("language", 40) == 1
    assert caller.is_slow
    engine.CALLER.reset(token)


def _policy(periods: Periods, project: str) -> Periods:
    return periods


def test_source_policy_applies_to_events(site: Site) -> None:
    site.post_events(*(event(source=source, visitor=1) for source in ("beacon", "server", "log")))
    reports = site.reports(lambda project: (Period(FIRST.date(), "beacon_only"),))
    query = Query("site", FIRST, None, Filters(), NOON + DAY)
    rows = reports.events(reports.take(), query, ChosenEvents(by="source")).to_pylist()
    assert [(row["value"], row["events"]) for row in rows] == [("beacon", 1)]


def test_events_of_people_without_evidence_are_left_out_under_confirmed_people(site: Site) -> None:
    """Visitors: 1 loaded an asset, 2 has no evidence, 3 has no view, and 4 has none on another day."""
    person = {"traffic": "human", "source": "log"}
    site.post(*(view(**person, visitor=visitor) for visitor in (1, 2)), view(**person, visitor=4, ts=NOON - DAY))
    site.post_loads(loads(visitor=1), loads(visitor=5, day=(NOON - DAY).date()))
    events = [event(**person, name=str(visitor), visitor=visitor) for visitor in (1, 2, 3, 4, None)]
    site.post_events(*events, event(source="log", traffic="ai", name="ai", visitor=2))
    query, chosen = Query("site", FIRST, None, Filters(), NOON + DAY), ChosenEvents()
    for _ in range(2):
        for periods, left_out in (((), set[str]()), ((Period(FIRST.date(), "confirmed_people"),), {"2"})):
            reports = site.reports(partial(_policy, periods))
            names = {row["name"] for row in reports.events(reports.take(), query, chosen).to_pylist()}
            assert names == {"1", "2", "3", "4", "None", "ai"} - left_out
        site.load()
