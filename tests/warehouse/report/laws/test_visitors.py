"""Visitors and visits of any lake are those of plain Python, whatever happened to the files since."""

import json
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from functools import partial
from itertools import chain, combinations, cycle, product
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import temporary
from tests.rounds import rounds, seeded, some
from tests.warehouse.maintenance.reclassification.rules import RULES, reclassified
from tests.warehouse.report.laws import generated, model, reference, visited
from tests.warehouse.report.laws.generated import Breakdown
from tests.warehouse.report.laws.reference import (
    AGENTS,
    EVERYTHING,
    LOADS,
    MIDNIGHT,
    POLICIES,
    SCOPES,
    LakeIn,
    SmallLake,
)
from tests.warehouse.report.laws.test_reading_laws import answered, expected
from tests.warehouse.site import DAY, NOON, Row, Site, event, view
from tests.warehouse.site import loads as loads_of
from warehouse.columns.dimensions import FILTERS
from warehouse.columns.filters import Filters
from warehouse.control.policy import Period, Periods, Policy
from warehouse.maintenance import rollups
from warehouse.maintenance.reclassification import reclassify
from warehouse.query.time_range import FIRST, LAST, TimeRange
from warehouse.report.audience import visitors
from warehouse.report.cells import Scope
from warehouse.report.results import Query
from warehouse.rollups import catalog, check
from warehouse.tables import ASSET_LOADS_TABLE, EVENTS_TABLE, HITS_TABLE

HALF_HOUR, MICROSECOND = timedelta(minutes=30), timedelta(microseconds=1)
MIXED = [{**AGENTS[0], "visitor": -7}, {**AGENTS[2], "visitor": -7}]
"""A person and an AI agent with one address and user agent."""
UNSIGNED = {**AGENTS[0], "verification": "invalid_signature", "visitor": 1_000}
"""A person with the signature of an agent that did not sign."""
READERS = [{**each, "visitor": 10 * number + kind} for kind, each in enumerate(AGENTS) for number in range(2)]
MINUTES = [0, 1, 29, 30, 31, 61, 90, 700, 1439]
VIEWS = st.builds(
    lambda reader, day, minute, **columns: view(
        ts=MIDNIGHT + timedelta(days=day, minutes=minute), **{**columns, **reader}
    ),
    st.sampled_from([*READERS, *MIXED, *MIXED, UNSIGNED, {**AGENTS[0], "visitor": None}]),
    st.sampled_from([-16, -15, -1, 0, 0, 1]),
    st.sampled_from(MINUTES),
    path=st.sampled_from(["/", "/a", "/a/b"]),
    project_id=st.sampled_from(["site", "site", "site", "another"]),
    source=st.sampled_from(["beacon", "beacon", "server", "log"]),
    referrer_host=st.sampled_from([None, "example.org"]),
    referrer=st.sampled_from(generated.REFERRERS),
    utm_source=st.sampled_from([None, "", "letter"]),
    channel=st.sampled_from([None, "Search"]),
    country=st.sampled_from([None, "DE"]),
    format=st.sampled_from([None, "markdown"]),
    status=st.sampled_from([None, 200]),
)
EVENTS = st.lists(
    st.builds(
        lambda day, minute, second, **columns: {
            **event(ts=(at := MIDNIGHT + timedelta(days=day, minutes=minute, seconds=second)), **columns),
            "date": at.date(),
        },
        st.sampled_from([-16, -15, 0, 0]),
        st.sampled_from(MINUTES),
        st.sampled_from([50e-6, 50e-6, -3]),
        path=st.sampled_from(["/", "/a", "/a/b"]),
        visitor=st.sampled_from([None, *(each["visitor"] for each in READERS[:4])]),
        project_id=st.sampled_from(["site", "site", "another"]),
        interactive=st.sampled_from([True, False]),
        source=st.sampled_from(["server", "beacon", "beacon"]),
        name=st.sampled_from(["Signup", "engagement", "engagement"]),
        props=st.sampled_from([1, 999, 59_001, 10**7, 10**12, -9, "x", None]).map(
            lambda ms: json.dumps({"ms": str(ms)})
        ),
    ),
    max_size=9,
)
LISTS = st.lists(VIEWS, max_size=14)
BY: list[tuple[str, ...]] = [
    (), ("day",), ("day", "quarter"), ("second",), ("agent",), ("purpose", "os"), ("browser",), ("path",), ("source",),
    ("referrerHost",), ("utmSource",), ("utmMedium", "source"), ("entryPage",), ("exitPage",), ("format",), ("status",),
    ("channel",), ("country",), ("utmTerm",), ("language", "country"),
    ("path", "referrerHost"), ("entryPage", "browser"), ("path", "day"), ("agent", "quarter"),
    ("exitPage", "entryPage"), ("evidence",), ("source", "evidence"), ("evidence", "path"), ("day", "evidence"),
]  # fmt: skip


def distinct_times(*lists: list[Row]) -> list[list[Row]]:
    """Return the rows with times that differ by microseconds: the order of views at one instant is not stored."""
    shifts = iter(range(sum(map(len, lists))))
    return [[{**row, "ts": row["ts"] + timedelta(microseconds=next(shifts))} for row in rows] for rows in lists]


def counted(lake: SmallLake, scope: Scope, by: tuple[str, ...], *, is_covered: bool = True) -> visited.Counts:
    return of_table(visitors.counts(lake.use(is_covered=is_covered), lake.snapshot, scope, *by), by)


def of_table(table: pa.Table, by: tuple[str, ...]) -> visited.Counts:
    rows = table.to_pylist()
    result = {tuple(row[name] for name in by): {name: row[name] for name in visited.COLUMNS} for row in rows}
    assert len(result) == len(rows)
    return result


@pytest.mark.long
@settings(max_examples=rounds(36))
@given(
    LISTS,
    LISTS,
    LISTS,
    st.tuples(LOADS, LOADS, LOADS),
    st.tuples(EVENTS, EVENTS, EVENTS),
    st.sets(st.integers(0, 8)),
    SCOPES,
    st.sampled_from(BY),
)
def test_visitors_are_those_of_plain_python(  # noqa: PLR0917  # what is drawn
    lake_in: LakeIn,
    rolled_up: list[Row],
    later: list[Row],
    waiting: list[Row],
    loads: tuple[list[Row], ...],
    events: tuple[list[Row], ...],
    removed: set[int],
    scope: Scope,
    by: tuple[str, ...],
) -> None:
    """Check also days with later files or waiting rows, and months with days whose files were removed."""
    rolled_up, later, waiting = distinct_times(rolled_up, later, waiting)
    with temporary.folder() as folder:
        lake = lake_in(Path(folder))
        lake.add(rolled_up, "first")
        beside = {ASSET_LOADS_TABLE: loads, EVENTS_TABLE: events}
        for spec, (first, _, _) in beside.items():
            lake.add_beside(spec, first, "first")
        lake.write_rollups(with_ranking=False)
        days = [file.partition for number, file in enumerate(lake.files) if number not in removed]
        lake.files = [file for file in lake.files if file.partition in days]
        lake.add(later, "later")
        lake.waiting = reference.hot(waiting)
        for spec, (_, second, third) in beside.items():
            lake.add_beside(spec, second, "later")
            lake.wait_beside(spec, third)
        differences = [
            check.find_difference(lake.database, part, lake.files, lake.beside) for part in lake.coverage.parts
        ]
        stored = [*(row for row in rolled_up if row["ts"].date().isoformat() in days), *later, *waiting]
        rows = model.with_evidence(stored, [*chain(*loads)])
        expected = visited.counts(rows, scope, by, [*chain(*events)])
        assert counted(lake, scope, by) == expected
        assert counted(lake, scope, by, is_covered=False) == expected
        lake.write_rollups(with_ranking=False)  # copies days that have no later file
        assert counted(lake, scope, by) == expected
        days_of = counted(lake, scope, ("day",)).values()
        for totals in counted(lake, scope, ()).values():
            assert totals == {name: sum(row[name] for row in days_of) for name in visited.COLUMNS}
            assert max(totals["human"], totals["ai"]) <= totals["total"] <= totals["human"] + totals["ai"]
        differences += [
            check.find_difference(lake.database, part, lake.files, lake.beside) for part in lake.coverage.parts
        ]
        assert differences == [None] * len(differences)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(rounds(6)))
def test_visitors_with_any_two_filters_are_those_of_plain_python(small_lake: SmallLake, seed: int) -> None:
    chance = seeded(seed)
    days = generated.DAYS[-5:]  # two months: each one costs a rollup
    lists = ([generated.row(chance, days=days) for _ in range(each)] for each in (90, 20, 9))
    in_rollups, later, waiting = distinct_times(*lists)
    small_lake.add(in_rollups, "first")
    small_lake.write_rollups(with_ranking=False)
    small_lake.add(later, "later")
    small_lake.waiting = reference.hot(waiting)
    rows = model.with_evidence([*in_rollups, *later, *waiting], [])
    people = [row for row in model.with_pages(rows) if row["entryPage"]]
    for number, names in enumerate(some(chance, combinations(FILTERS, 2))):
        row = chance.choice(people)
        filters = Filters(**{name: model.value_of(row, name) or "none" for name in names})
        scope = Scope(row["project_id"], TimeRange(), filters)
        for by in ((), BY[number % len(BY)]):
            assert counted(small_lake, scope, by) == visited.counts(rows, scope, by), (names, by)


@pytest.mark.long
def test_visits_and_evidence_are_those_of_plain_python_after_each_change_of_the_files(tmp_path: Path) -> None:
    """Load, count in rollups, compact and reclassify, with loads of assets and events that come late."""
    site, chance, today, policies = Site(tmp_path / "data"), seeded(3), generated.NOW.date(), dict[str, Periods]()
    rows, loads, events, days = list[Row](), list[Row](), list[Row](), generated.DAYS[-2:]
    reports = site.reports(lambda project: policies.get(project, ()))
    dimensions = cycle([("evidence",), ("entryPage",), ("source", "day")])

    def stage(count: int) -> None:
        more = [generated.row(chance, days=days) for _ in range(count)]
        new = [{**row, "ts": row["ts"] + timedelta(microseconds=7 * len(rows) + 7 * i)} for i, row in enumerate(more)]
        for i, row in enumerate(new[::2]):
            row["visitor"] = 100 + len(rows) + i  # with one view: late loads and events change evidence and bounces
        site.stage(new, *late())
        rows.extend(new)

    def late() -> tuple[list[Row], list[Row], list[Row]]:
        seen = chance.sample(rows, 9) if rows else []
        read = [loads_of(row["visitor"], row["ts"].date(), project=row["project_id"]) for row in seen]
        done = [
            event(
                name,
                ts=row["ts"] + DAY / 1_000,
                **{each: row[each] for each in ("visitor", "project_id", "source")},
                interactive=name == "Signup",
                props='{"ms": "70000"}',
            )
            for row, name in zip(seen, ["Signup", "engagement"] * 3, strict=False)
        ]
        loads.extend(read)
        events.extend(done)
        return read, [], done

    def reclassify_all() -> None:
        reclassify.reclassify(site.hot, site.root, site.share, RULES, 0)
        rows[:] = map(reclassified, rows)

    def roll_up() -> None:
        rollups.write_due(site.hot, site.root, site.share, today + 40 * DAY, 0, settle_s=0)
        assert catalog.choose(site.root, site.state(HITS_TABLE).files).parts

    for change in (
        *(partial(stage, 80), site.load, roll_up, lambda: site.stage([], *late()), partial(stage, 30), site.load),
        *(roll_up, lambda: site.stage([], *late()), site.load, roll_up, site.compact, reclassify_all, roll_up),
    ):
        change()
        snapshot, known = reports.take(), model.with_evidence(rows, loads)
        for filters in (Filters(), Filters(evidence="assets"), Filters(exitPage="/a*"), Filters(POLICIES[0])):
            policies["site"] = filters.policy
            query = Query("site", FIRST, LAST, filters, generated.NOW)
            for by in ((), next(dimensions)):
                scope = Scope("site", TimeRange(), filters)
                answer = of_table(reports.visitor_counts(snapshot, query, *by), by)
                assert answer == visited.counts(known, scope, by, events), (change, filters, by)
            form = Breakdown("evidence", 0, 9)
            assert answered(reports, snapshot, query, form) == expected(rows, query, form, loads)
    reports.close()
    site.close()


def each_entry_page(lake: SmallLake) -> Iterator[dict[str, dict[str, int]]]:
    """Yield the numbers of visitors by entry page, of files and then of a rollup; check the rollup."""
    for is_in_rollup in (False, True):
        if is_in_rollup:
            lake.write_rollups()
        yield {page: row for (page,), row in counted(lake, EVERYTHING, ("entryPage",)).items()}
    [part] = lake.coverage.parts
    assert check.find_difference(lake.database, part, lake.files, lake.beside) is None


@pytest.mark.long
def test_visit_ends_after_30_minutes_and_has_one_source(small_lake: SmallLake) -> None:
    cases = [
        (HALF_HOUR, "beacon", 1),
        (HALF_HOUR + MICROSECOND, "beacon", 2),
        (timedelta(0), "log", 2),
        (-MICROSECOND, "beacon", 1),
    ]
    for visitor, (later, source, _) in enumerate(cases):
        of_visitor = {"path": f"/{visitor}", "visitor": visitor}
        small_lake.add(
            [view(source="beacon", **of_visitor), view(ts=NOON + later, source=source, **of_visitor)], f"{visitor}"
        )
    for rows in each_entry_page(small_lake):
        assert [rows[f"/{visitor}"]["visits"] for visitor in range(len(cases))] == [number for _, _, number in cases]
        assert counted(small_lake, EVERYTHING, ())[()]["human"] == len(cases)


@pytest.mark.long
def test_duration_has_the_time_for_which_the_last_page_was_visible(small_lake: SmallLake) -> None:
    """Read a page for 100 s and then another one, whose times the script sends at seconds after the first view.

    The next visit begins at 5,000 s, on the same page.
    """
    signup: Row = {"name": "Signup", "interactive": True}
    time: Row = {"name": "engagement", "interactive": False, "path": "/b"}
    cases: list[tuple[int, list[tuple[int, object, Row]]]] = [
        (100, []),
        (120, [(130, 20_999, {})]),
        (140, [(130, 20_000, {}), (150, 40_000, {}), (160, 5_000, {})]),
        (130, [(130, 500_000, {}), (99, 900_000, {})]),  # the page was also opened before
        (1_900, [(1_900, 1_800_000, {})]),
        (1_900, [(4_999, 4_899_000, {})]),
        (1_000, [(4_999, 900_000, {})]),
        (100, [(5_000, 900_000, {})]),
        (100, [(130, 20_000, each) for each in ({"source": "server"}, {"visitor": 99}, {"path": "/a"}, signup)]),
        (100, [(130, ms, {}) for ms in (-9, "x", 10**12, None)]),
    ]
    for number, (_, sent) in enumerate(cases):
        first, reader = f"/{number}", {"source": "beacon", "visitor": number}
        later = [view("/b", NOON + timedelta(seconds=each), **reader) for each in (100, 5_000)]
        small_lake.add([view(first, NOON, **reader), *later], first[1:])
        rows = [
            event(**{**time, **reader, **columns}, ts=at, props=json.dumps({"ms": ms})) | {"date": at.date()}
            for seconds, ms, columns in sent
            for at in [NOON + timedelta(seconds=seconds)]
        ]
        small_lake.add_beside(EVENTS_TABLE, rows, first[1:])
    for counts in each_entry_page(small_lake):
        seconds = [counts[f"/{number}"]["visit_seconds"] for number in range(len(cases))]
        assert seconds == [expected for expected, _ in cases]


@pytest.mark.long
def test_event_just_before_the_view_of_a_visit_prevents_a_bounce(small_lake: SmallLake) -> None:
    """The script sends a view and the events of a page at once, and any of them may arrive first."""
    cases = [(-5.001, 1), (-5, 0), (-0.003, 0), (1_800, 0), (1_800.001, 1)]
    for visitor, (second, _) in enumerate(cases):
        reader, at = {"source": "beacon", "visitor": visitor, "path": f"/{visitor}"}, NOON + timedelta(seconds=second)
        small_lake.add([view(ts=NOON, **reader)], f"{visitor}")
        small_lake.add_beside(EVENTS_TABLE, [event(ts=at, **reader) | {"date": at.date()}], f"{visitor}")
    for rows in each_entry_page(small_lake):
        of_visitors = [rows[f"/{visitor}"] for visitor in range(len(cases))]
        assert [(row["bounces"], row["visit_seconds"]) for row in of_visitors] == [(bounces, 0) for _, bounces in cases]


def test_visit_and_visitor_end_at_midnight(small_lake: SmallLake) -> None:
    small_lake.waiting = reference.hot([view(ts=MIDNIGHT - MICROSECOND, visitor=1), view(ts=MIDNIGHT, visitor=1)])
    (((), row),) = counted(small_lake, EVERYTHING, ()).items()
    assert (row["human"], row["visits"], row["bounces"]) == (2, 2, 0)  # a log does not know of bounces


@pytest.mark.long
def test_person_with_an_invalid_signature_is_one_visitor_beside_another_one(small_lake: SmallLake) -> None:
    small_lake.add([view(**{**AGENTS[0], "visitor": 1}), view(**UNSIGNED)], "one")
    for _ in range(2):
        (((), row),) = counted(small_lake, EVERYTHING, ()).items()
        assert (row["human"], row["visits"]) == (2, 2)
        small_lake.write_rollups()


@pytest.mark.long
def test_parts_of_the_visitors_add_up(small_lake: SmallLake, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = seeded(2)

    def from_day(first: datetime) -> list[Row]:
        return [
            view(ts=first + chance.randrange(3000) * timedelta(minutes=1, microseconds=1), source=source,
                 path=chance.choice(["/", "/a"]), **{**chance.choice([*READERS, *MIXED]), "visitor": number})
            for source in ("beacon", "log") for number in [*range(-9, 9), -(2**63), 2**63 - 1] for _ in range(3)
        ]  # fmt: skip

    small_lake.add(from_day(NOON - 9 * DAY), "one")
    small_lake.write_rollups()
    small_lake.add(from_day(NOON), "two")
    small_lake.waiting = reference.hot(from_day(NOON))
    whole = [counted(small_lake, EVERYTHING, by) for by in BY[::4]]
    monkeypatch.setattr(visitors, "PART_ROWS", 20)
    assert all(whole)
    assert [counted(small_lake, EVERYTHING, by) for by in BY[::4]] == whole


IS_COUNTED: dict[Policy, str] = {
    "all": "true",
    "beacon_only": "source = 'beacon'",
    "log_only": "source <> 'beacon'",
    "beacon_people_log_machines": "(source = 'beacon') = (traffic = 'human' AND format IS DISTINCT FROM 'markdown')",
}


@pytest.mark.long
def test_visitors_of_each_policy_and_source_are_the_distinct_ones(small_lake: SmallLake) -> None:
    chance = seeded(1)
    rows = [
        view(ts=NOON + chance.randrange(40) * DAY, source=source, format=form, **chance.choice([*READERS, *MIXED]))
        for source in ("beacon", "server", "log") for form in (None, "markdown") for _ in range(60)
    ]  # fmt: skip
    small_lake.add(rows, "one")
    small_lake.write_rollups()
    hits = f"read_parquet('{small_lake.root}/hits/*/*.parquet', hive_partitioning = true)"
    for policy, source in product(IS_COUNTED, (None, "beacon", "server", "log")):
        scope = Scope("site", TimeRange(), Filters((Period(date.min, policy),), source=source))
        of_source = f"source = '{source}'" if source else "true"
        of_kind = {kind: f"traffic = '{kind}'" for kind in ("human", "ai", "bot")} | {"total": "traffic <> 'bot'"}
        distinct = ", ".join(f"count(DISTINCT (date, visitor)) FILTER ({each})" for each in of_kind.values())
        sql = f"SELECT {distinct} FROM {hits} WHERE {IS_COUNTED[policy]} AND {of_source}"
        (expected,) = small_lake.database.execute(sql).fetchall()
        (row,) = counted(small_lake, scope, ()).values() or [dict.fromkeys(visited.COLUMNS, 0)]
        assert tuple(row[kind] for kind in of_kind) == expected
