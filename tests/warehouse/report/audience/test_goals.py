"""Conversions are the same as in plain Python: of goals on pages and events, before and after their definition."""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import temporary
from tests.rounds import rounds
from tests.warehouse.report.laws import model, reference, visited
from tests.warehouse.report.laws.reference import SCOPES, LakeIn
from tests.warehouse.report.laws.test_visitors import LISTS, MINUTES, READERS, distinct_times
from tests.warehouse.site import CACHE_BYTES, DAY, NOON, Row, Site, event, view
from warehouse.columns.filters import Filters
from warehouse.control.goals import Goal
from warehouse.query import engine
from warehouse.query.snapshot import SnapshotReader
from warehouse.query.time_range import FIRST
from warehouse.report.audience import visitors
from warehouse.report.audience.goals import Conversion, Conversions
from warehouse.report.cells import Scope
from warehouse.report.reports import Reports
from warehouse.report.results import Query
from warehouse.tables import EVENTS_TABLE

GOALS = [
    Goal(name, name, kind, value, 0)  # type: ignore[arg-type]
    for name, kind, value in (
        ("exact", "path", "/a"), ("part", "path", "*b*"), ("prefix", "path", "/a*"), ("sign up", "event", "Signup"),
        ("time", "event", "engagement"),
    )
]  # fmt: skip
EVENTS = st.lists(
    st.builds(
        lambda reader, day, minute, **columns: event(
            ts=NOON.replace(hour=0) + day * DAY + minute * DAY / 1440, **reader, **columns
        ),
        st.sampled_from([{name: each.get(name) for name in ("traffic", "agent", "visitor")} for each in READERS]),
        st.sampled_from([-16, -1, 0, 1]),
        st.sampled_from(MINUTES),
        name=st.sampled_from(["Signup", "Signup", "engagement"]),
        project_id=st.sampled_from(["site", "site", "another"]),
        source=st.sampled_from(["beacon", "server", "log"]),
    ),
    max_size=8,
)
BY = ["", "", "channel", "country", "agent", "browser", "source", "path", "entryPage", "referrerHost"]


def expected(  # noqa: C901
    rows: Sequence[Row], events: Sequence[Row], scope: Scope, goals: Sequence[Goal], by: str
) -> set[Conversion]:
    """Count by loops over visitors: each one by `visited.counts`, which has the same visitor alone."""
    dimension = (by,) if by else ()
    filters = scope.filters
    own = Filters(filters.policy, source=filters["source"])
    is_plain = not filters.by_evidence and not by and not {*filters.fields} - {"traffic", "source"}
    result = set()
    everybody = visited.counts(rows, scope, dimension)
    kinds = [kind for kind in ("human", "ai") if kind in filters.selected_traffic]
    if by in {"channel", "country", "browser", "entryPage"}:
        kinds = [kind for kind in kinds if kind == "human"]
    elif by == "agent":
        kinds = [kind for kind in kinds if kind == "ai"]
    for goal in goals:
        if goal.kind == "path":
            reached = [row for row in rows if model.matches(row, Filters(path=goal.value))]
        else:
            reached = [
                {**row, "format": None, "evidence": "not_measured"}
                for row in events
                if row["name"] == goal.value != "engagement"
            ]
        of_goal = reference.matching(reached, Scope(scope.project, scope.time_range, own))
        of_visitor = defaultdict(list)
        for row in of_goal:
            of_visitor[row["ts"].date(), row["visitor"], row["traffic"]].append(row)
        times: defaultdict[tuple[object, str], int] = defaultdict(int)
        converted: defaultdict[tuple[object, str], int] = defaultdict(int)
        for (day, visitor, kind), done in of_visitor.items():
            alone = [row for row in rows if (row["ts"].date(), row["visitor"]) == (day, visitor)]
            for key, counts in visited.counts(alone, scope, dimension).items() if visitor is not None else ():
                converted[key, kind] += counts[kind]
                times[key, kind] += 0 if is_plain else counts[kind] * len(done)
            times[(), kind] += len(done) if is_plain else 0
        for kind in kinds:
            for key in everybody if by else [()]:
                whole = everybody.get(key, {}).get(kind, 0)
                if whole or not by:
                    value = key[0] if by else None
                    result.add(Conversion(goal.name, value, kind, times[key, kind], converted[key, kind], whole))
    return result


@pytest.mark.long
@settings(max_examples=rounds(36))
@given(LISTS, LISTS, EVENTS, SCOPES, st.sampled_from(BY), st.sampled_from([GOALS, GOALS[:3], GOALS[3:]]))
def test_conversions_are_those_of_plain_python(
    lake_in: LakeIn,
    stored: list[Row],
    waiting: list[Row],
    some_events: list[Row],
    scope: Scope,
    by: str,
    goals: list[Goal],
) -> None:
    stored, waiting = distinct_times(stored, waiting)
    with temporary.folder() as folder:
        lake = lake_in(Path(folder))
        lake.add(stored, "first")
        lake.write_rollups(with_ranking=False)
        lake.waiting = reference.hot(waiting)
        lake.wait_beside(EVENTS_TABLE, some_events)
        counted = Conversions(lake.use(), lake.snapshot, scope, goals, by)
        rows = [each for of_goal in counted.each_goal() for each in of_goal]
        assert len(rows) == len({*rows})
        assert {*rows} == expected(model.with_evidence([*stored, *waiting], []), some_events, scope, goals, by)
        assert all(each.converted <= each.visitors for each in rows)


def test_goal_that_is_defined_today_counts_the_last_month(site: Site) -> None:
    """Count a visitor on two days twice, by channel, in files and in waiting rows."""
    goals: list[Goal] = []
    for days, path, channel, visitor in (
        (30, "/", "Search", 1), (30, "/thanks", None, 1), (29, "/", None, 1), (29, "/thanks", None, 1),
        (28, "/", "Search", 2), (28, "/", "AI assistants", 3), (0, "/thanks", "Search", 4),
    ):  # fmt: skip
        site.post(view(path, NOON - days * DAY, channel=channel, visitor=visitor))
        if days == 28:
            site.load()
    site.post_events(event(ts=NOON - 28 * DAY, visitor=3), event(ts=NOON - 28 * DAY, visitor=99))
    site.load()
    site.post_events(event(ts=NOON - 28 * DAY, visitor=2, source="beacon"))
    reader = SnapshotReader(site.hot_log, site.root)
    reports = Reports(reader, site.root, site.spill, CACHE_BYTES, goals_of=lambda project: goals)
    query = Query("site", FIRST, None, Filters(traffic="human"), NOON + DAY)
    assert [*reports.goals(reports.take(), query)] == []
    goals += [Goal("1", "order", "path", "/thanks", 0), Goal("2", "sign up", "event", "Signup", 0)]
    assert [*reports.goals(reports.take(), query)] == [
        [("order", None, "human", 3, 3, 5)],
        [("sign up", None, "human", 3, 2, 5)],
    ]
    by_channel = [*reports.goals(reports.take(), query, "channel")]
    assert by_channel == [
        [
            ("order", "Search", "human", 2, 2, 3),
            ("order", None, "human", 2, 2, 2),
            ("order", "AI assistants", "human", 0, 0, 1),
        ],
        [
            ("sign up", "Search", "human", 1, 1, 3),
            ("sign up", "AI assistants", "human", 1, 1, 1),
            ("sign up", None, "human", 0, 0, 2),
        ],
    ]
    reports.close()


@pytest.mark.parametrize(("by", "fast_views", "is_slow"), [("", 3, False), ("channel", 4, False), ("channel", 3, True)])
def test_goals_by_views_that_are_read_one_by_one_are_slow(
    site: Site, monkeypatch: pytest.MonkeyPatch, by: str, fast_views: int, is_slow: bool
) -> None:
    site.post(*(view(visitor=number) for number in range(4)), *(view(project_id="large") for _ in range(4)))
    site.load()
    monkeypatch.setattr(visitors, "PART_ROWS", 2)
    monkeypatch.setattr(visitors, "FAST_VIEWS_MAX", fast_views)
    caller = engine.Caller(accepts_slow=True)
    token = engine.CALLER.set(caller)
    reader, goal = SnapshotReader(site.hot_log, site.root), Goal("1", "read", "path", "/a", 0)
    with closing(Reports(reader, site.root, site.spill, CACHE_BYTES, goals_of=lambda project: [goal])) as reports:
        [rows] = reports.goals(reports.take(), Query("site", FIRST, None, Filters(), NOON + DAY), by)
    engine.CALLER.reset(token)
    assert [each.converted for each in rows if each.traffic == "human"] == [4]
    assert caller.is_slow is is_slow
