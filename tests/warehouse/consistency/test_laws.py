"""After any sequence of posts, loads and maintenance, each report equals that of a dictionary."""

import itertools
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests import temporary
from tests.rounds import rounds
from tests.warehouse.site import Ranking, Row, Site, key, rank, view
from warehouse import doctor
from warehouse.maintenance import compact
from warehouse.query import sql_views
from warehouse.query.snapshot import SnapshotReader
from warehouse.query.time_range import FIRST, LAST
from warehouse.schema import HOT

pytestmark = pytest.mark.long

PROJECTS = ["site", "site-2"]
PATHS = ["/", "/a", "/a/b", "/%C3%A9", "/it's", "/a%2Fb", "/Z", "/~x;y=1,2", "/" + 40 * "long"]
READERS = [("human", None), ("ai", "GPTBot"), ("ai", "ClaudeBot"), ("ai", None), ("bot", "curl"), ("bot", None)]
FIRST_DAY = datetime(2026, 8, 28, tzinfo=UTC)
DAYS = 8
NOW = FIRST_DAY + timedelta(days=DAYS)

# Within eight days over the end of a month, mostly at few times of day, so that bounds meet hits; some in other years,
# and some at or after now, as a sender's clock may be ahead.
NOON_US, DAY_US = 43_200_000_000, 86_400_000_000
instants = st.one_of(
    st.builds(
        lambda day, microseconds: FIRST_DAY + timedelta(days=day, microseconds=microseconds),
        st.integers(0, DAYS - 1),
        st.sampled_from([0, 1, NOON_US - 1, NOON_US, NOON_US + 1, DAY_US - 1]) | st.integers(0, DAY_US - 1),
    ),
    st.sampled_from([datetime(1, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)]),
    st.sampled_from([NOW, NOW + timedelta(minutes=4)]),
)
bounds = instants | st.sampled_from([FIRST, LAST])
rows = st.builds(
    lambda project, path, ts, reader: view(path, ts, project_id=project, traffic=reader[0], agent=reader[1]),
    st.sampled_from(PROJECTS),
    st.sampled_from(PATHS),
    instants,
    st.sampled_from(READERS),
)
posts = st.lists(rows, min_size=1, max_size=12)

Counted = dict[str, tuple[int, int]]
"""Human and AI views by path."""
Ranked = list[tuple[str, tuple[int, int]]]
"""Paths with their human and AI views, most views first, then by path in byte order."""


def expected(posted: Iterable[Row], project: str, start: datetime, end: datetime) -> Ranked:
    """Return the expected ranking, counted in a dictionary."""
    counted: Counted = {}
    for row in posted:
        if row["project_id"] == project and start <= row["ts"] < end and row["traffic"] != "bot":
            human, ai = counted.get(row["path"], (0, 0))
            counted[row["path"]] = (human + (row["traffic"] == "human"), ai + (row["traffic"] == "ai"))
    return sorted(counted.items(), key=lambda item: (-sum(item[1]), item[0].encode()))


def answered(ranking: Ranking) -> Ranked:
    return [(row["path"], (row["human"], row["ai"])) for row in ranking.paths.to_pylist()]


class Warehouse(RuleBasedStateMachine):
    """Posts, loads and maintenance in any order. Each report is compared with the expected one."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = temporary.folder()
        self.site = Site(Path(self.folder.name) / "data")
        self.reports = self.site.reports()
        self.posted: list[Row] = []
        self.is_waiting = False

    def teardown(self) -> None:
        self.reports.close()
        self.site.close()
        self.folder.cleanup()

    @rule(posted=posts)
    def post(self, posted: list[Row]) -> None:
        self.site.post(*posted)
        self.posted += posted
        self.is_waiting = True

    @rule(staged=posts)
    def stage(self, staged: list[Row]) -> None:
        """Post rows in staged files, as an import does."""
        self.site.stage(staged)
        self.posted += staged
        self.is_waiting = True

    @precondition(lambda self: self.is_waiting)
    @rule()
    def load(self) -> None:
        self.site.load()
        self.is_waiting = False

    @precondition(lambda self: self.is_waiting)
    @rule()
    def load_hits_alone(self) -> None:
        """Load as a loader that is killed between its commits to the two tables."""
        with suppress(Died):
            self.site.load(_die_before_daily_errors)

    @rule(small_files_max=st.integers(0, 2))
    def compact(self, small_files_max: int) -> None:
        self.site.compact(small_files_max)

    @rule()
    def vacuum(self) -> None:
        compact.vacuum(self.site.hot, self.site.root, 0)
        self.is_waiting = False

    @rule(project=st.sampled_from(PROJECTS), start=bounds, end=bounds)
    def ask(self, project: str, start: datetime, end: datetime) -> None:
        ranking = rank(self.reports, project, start, end, NOW)
        counted = expected(self.posted, project, start, end)
        assert answered(ranking) == counted
        assert (ranking.human, ranking.ai) == tuple(sum(views[i] for _, views in counted) for i in (0, 1))

    @rule(project=st.sampled_from(PROJECTS), start=bounds)
    def ask_to_now(self, project: str, start: datetime) -> None:
        assert answered(rank(self.reports, project, start, None, NOW)) == expected(self.posted, project, start, NOW)

    @rule(project=st.sampled_from(PROJECTS), instants=st.tuples(bounds, bounds, bounds))
    def split(self, project: str, instants: tuple[datetime, datetime, datetime]) -> None:
        start, middle, end = sorted(instants)
        whole, left, right = (
            dict(answered(rank(self.reports, project, *span, NOW)))
            for span in ((start, end), (start, middle), (middle, end))
        )
        none = (0, 0)
        assert whole == {
            path: tuple(map(sum, zip(left.get(path, none), right.get(path, none), strict=True)))
            for path in {*left, *right}
        }

    @rule()
    def sql(self) -> None:
        """Compare the SQL view `hits` row by row, and `daily_views` with its counts."""
        reader = SnapshotReader(self.site.hot_log, self.site.root, columns=HOT.names)
        with self.site.database.cursor() as cursor:
            sql_views.create_temporary(cursor, reader.take_all())
            hits = cursor.sql("SELECT * FROM hits").to_arrow_table().to_pylist()
            counted = cursor.sql("SELECT * FROM daily_views").to_arrow_table().to_pylist()
        reader.close()
        assert all(row["date"] == row["ts"].date() for row in hits)
        assert Counter(map(_place, hits)) == Counter(map(_place, self.posted))
        assert _added_up(counted) == Counter(map(key, self.posted))

    @rule()
    def examine(self) -> None:
        findings = list(doctor.examine(self.site.hot_log, self.site.root, self.site.spill, 0))
        assert [finding for finding in findings if finding.fault] == []

    @invariant()
    def all_views_are_counted(self) -> None:
        for project in PROJECTS:
            assert answered(rank(self.reports, project, FIRST, None, NOW)) == expected(self.posted, project, FIRST, NOW)


class Died(Exception):
    """Signal that the loader ends here, in place of a kill."""


def _die_before_daily_errors(step: str) -> None:
    if step == "before commit of daily_errors":
        raise Died


def _place(hit: Row) -> tuple[Any, ...]:
    return (*key(hit), hit["ts"])


def _added_up(counted: list[Row]) -> Counter[tuple[Any, ...]]:
    added: Counter[tuple[Any, ...]] = Counter()
    for row in counted:
        assert row["month"] == row["date"].isoformat()[:7]
        added[row["project_id"], row["date"], row["path"], row["traffic"], row["agent"]] += row["views"]
    return added


TestWarehouse = Warehouse.TestCase
TestWarehouse.settings = settings(
    max_examples=rounds(25),
    stateful_step_count=15,
    phases=[Phase.generate, Phase.shrink],  # the phase `explain` takes minutes
)


INSTANTS = [
    FIRST_DAY + timedelta(days=day, microseconds=microseconds)
    for day in (2, 3, 4, 5)
    for microseconds in (0, NOON_US, DAY_US - 1)
]
"""Instants around the end of a month."""


@pytest.mark.parametrize("where", ["in the hot log", "loaded", "loaded apart", "compacted"])
def test_range_includes_a_hit_at_its_start_and_excludes_one_at_its_end(tmp_path: Path, where: str) -> None:
    site = Site(tmp_path)
    posted = [view(f"/{i % 5}", ts, traffic="human" if i % 3 else "ai") for i, ts in enumerate(INSTANTS)]
    for row in posted:
        site.post(row)
        if where in ("loaded apart", "compacted"):
            site.load()
    if where == "loaded":
        site.load()
    if where == "compacted":
        site.compact()
    reports = site.reports()
    for start, end in itertools.combinations_with_replacement(INSTANTS, 2):
        assert answered(rank(reports, "site", start, end, NOW)) == expected(posted, "site", start, end)
    reports.close()
    site.close()
