"""Counts of any lake are those of plain Python: with rollups and without, whatever happened to the files since."""

from itertools import chain, combinations, product
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import temporary
from tests.rounds import rounds, seeded, some
from tests.warehouse.report.lake import Lake
from tests.warehouse.report.laws import generated, model, reference
from tests.warehouse.report.laws.generated import Breakdown, Series, Views
from tests.warehouse.report.laws.model import value_of
from tests.warehouse.report.laws.reference import AGENTS, LOADS, POLICIES, SCOPES, SEEN, LakeIn, SmallLake
from tests.warehouse.report.laws.test_reading_laws import ALL, answered, expected
from tests.warehouse.site import DAY, NOON, Row, view
from warehouse.columns.dimensions import BREAKDOWNS, FILTERS, PAGES
from warehouse.columns.filters import Filters
from warehouse.query.time_range import TimeRange
from warehouse.report.cells import Scope
from warehouse.tables import ASSET_LOADS_TABLE

pytestmark = pytest.mark.long

TIME = ["day", "quarter", "second"]
IN_ROLLUPS = [
    *((by,) for by in BREAKDOWNS),
    *(("day",), ("day", "quarter"), ("source", "day"), ("agent", "operator", "purpose", "traffic", "day")),
    *(("path", "day"), ("agent", "path"), ("browser", "status", "referrerHost")),
]
"""Dimensions that a rollup counts together."""
SINGLE = [
    *(Filters(), Filters(traffic="ai"), Filters(source="log"), Filters(agent="GPTBot", operator="OpenAI")),
    *(Filters(purpose="training"), Filters(verification="not_checked", source="beacon")),
    *(Filters(POLICIES[0]), Filters(POLICIES[1], source="log"), Filters(evidence="not_measured")),
]
"""Filters by which each rollup counts."""


@settings(max_examples=rounds(36))
@given(
    rolled_up=st.lists(SEEN, max_size=12),
    later=st.lists(SEEN, max_size=6),
    waiting=st.lists(SEEN, max_size=6),
    loads=st.tuples(LOADS, LOADS, LOADS),
    removed=st.sets(st.integers(0, 11)),
    scope=SCOPES,
    by=st.lists(st.sampled_from([*BREAKDOWNS, *TIME, "traffic", "userAgent"]), min_size=1, max_size=3, unique=True),
)
def test_counts_are_those_of_plain_python(  # noqa: PLR0917  # what is drawn
    lake_in: LakeIn,
    rolled_up: list[Row],
    later: list[Row],
    waiting: list[Row],
    loads: tuple[list[Row], ...],
    removed: set[int],
    scope: Scope,
    by: list[str],
) -> None:
    """Check files after some of them were removed, which invalidates their days, and others were added."""
    with temporary.folder() as folder:
        lake = lake_in(Path(folder))
        lake.add(rolled_up, "first")
        lake.add_beside(ASSET_LOADS_TABLE, loads[0], "first")
        lake.write_rollups(with_ranking=False)
        days = [file.partition for number, file in enumerate(lake.files) if number not in removed]
        lake.files = [file for file in lake.files if file.partition in days]
        lake.add(later, "later")
        lake.waiting = reference.hot(waiting)
        lake.add_beside(ASSET_LOADS_TABLE, loads[1], "later")
        lake.wait_beside(ASSET_LOADS_TABLE, loads[2])
        stored = [*(row for row in rolled_up if row["ts"].date().isoformat() in days), *later, *waiting]
        rows = model.with_evidence(stored, [*chain(*loads)])
        counted = reference.counts(rows, scope, lambda row: tuple(reference.value(row, each) for each in by))
        assert lake.counts(scope, *by) == lake.counts(scope, *by, is_covered=False) == counted
        lake.write_rollups(with_ranking=False)
        assert lake.counts(scope, *by) == counted


def test_whole_valid_days_are_counted_without_reading_hits(small_lake: SmallLake) -> None:
    rows = [
        view(("/a", "/b")[number % 2], NOON + number * DAY, **AGENTS[number % 6], status=200, referrer_host=f"{number}")
        for number in range(-20, 20)
    ]
    small_lake.add(rows, "one")
    small_lake.write_rollups()
    small_lake.empty_covered_files()
    of_paths = [("path",), ("path", "day"), ("day",)]
    cases = [*product(IN_ROLLUPS, SINGLE), *product(of_paths, (Filters(path=path) for path in ("/a", "/*", "*b*")))]
    for by, filters in some(seeded(1), cases, 3 * len(IN_ROLLUPS)):
        scope = Scope("site", TimeRange(), filters)
        counted = reference.counts(rows, scope, lambda row, by=by: tuple(reference.value(row, each) for each in by))
        assert small_lake.counts(scope, *by) == counted, (by, filters)


def test_partial_days_are_counted_from_hits(small_lake: SmallLake) -> None:
    small_lake.add([view(ts=NOON - DAY), view(ts=NOON), view(ts=NOON + DAY)], "one")
    small_lake.write_rollups()
    small_lake.empty_covered_files()
    within = TimeRange(NOON - DAY / 2 - DAY / 4, NOON + DAY)
    assert small_lake.counts(Scope("site", within, Filters()), "source") == {("log",): [1, 0, 0]}


def filter_value(chance: Random, row: Row, name: str) -> str:
    """Return a value of a filter that the row matches, if it has a value of this dimension."""
    value = value_of(row, "path" if name in PAGES else name) or "none"
    if name not in PAGES or chance.random() < 0.3:
        return value
    start, end = sorted(chance.sample(range(len(value) + 1), 2))
    return chance.choice([f"{value[:end]}*", f"*{value[start:end]}*"])


@pytest.mark.parametrize("seed", range(rounds(6)))
def test_reports_with_any_two_filters_are_those_of_plain_python(lake: Lake, seed: int) -> None:
    """Combine each two filters with breakdowns and series, of which each occurs several times."""
    chance = seeded(seed)
    forms = [*(Breakdown(by, 0, ALL) for by in BREAKDOWNS), Views(0, 3)]
    forms += [Series(interval, zone) for interval in ("day", "month") for zone in ("UTC", "Europe/Berlin")]
    snapshot = lake.reports.take()
    for number, names in enumerate(some(chance, combinations(FILTERS, 2))):
        row = chance.choice(lake.rows)
        filters = Filters(**{name: filter_value(chance, row, name) for name in names})
        period = chance.choice([TimeRange(), TimeRange(row["ts"], row["ts"] + 40 * DAY)])
        query = reference.query(row["project_id"], period, filters)
        for form in (forms[number % len(forms)], Series("week", generated.zone(chance))):
            answer = answered(lake.reports, snapshot, query, form)
            assert answer == expected(lake.rows, query, form), (query, form)
