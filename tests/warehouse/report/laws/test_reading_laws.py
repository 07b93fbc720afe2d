"""After any sequence of posts, loads and maintenance, each report equals that of a plain list of hits."""

import itertools
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests import temporary
from tests.rounds import rounds, seeded, some
from tests.warehouse.maintenance.reclassification.rules import RULES, reclassified
from tests.warehouse.report.laws import generated, model
from tests.warehouse.report.laws.generated import NOW, Breakdown, Form, Series, Views
from tests.warehouse.report.laws.model import Counted
from tests.warehouse.rollups.writing import write_rollup
from tests.warehouse.site import Row, Site, key
from warehouse.columns.filters import Filters
from warehouse.control.policy import POLICIES, Period, Periods
from warehouse.errors import MomentExpired, TooManyBuckets
from warehouse.hotlog.retention import AS_OF_S
from warehouse.lake import delta_table
from warehouse.maintenance import compact, erase, load, rollups, upkeep
from warehouse.maintenance.reclassification import reclassify
from warehouse.query import sql_views
from warehouse.query.moment import Moment
from warehouse.query.snapshot import Snapshot, SnapshotReader
from warehouse.query.time_range import FIRST
from warehouse.report.reports import Reports
from warehouse.report.results import Query, ReportPage
from warehouse.report.source_coverage import MISSING_DAYS_MAX
from warehouse.schema import HOT
from warehouse.tables import HITS_TABLE

pytestmark = pytest.mark.long

CACHE_BYTES = 64 * 1024 * 1024
SMALL_CACHES_BYTES = [0, 12_000, 30_000, 100_000]
"""Sizes of caches that have space for few results."""
ALL = 10**9
"""Number of rows on a page that has all of them."""

Answer = tuple[model.Views, Counted, bool]
"""Totals, rows, and whether more rows follow."""


def answered(reports: Reports, snapshot: Snapshot, query: Query, form: Form) -> Answer | None:
    """Return the answer of the reports; None for too many buckets."""
    match form:
        case Views(offset, limit):
            return _of_page(reports.views(snapshot, query, offset, limit), "path")
        case Breakdown(by, offset, limit):
            return _of_page(reports.breakdown(snapshot, query, by, offset, limit), "value")
        case Series(interval):
            try:
                totals, rows = reports.series(snapshot, query, interval, form.zone_info)
            except TooManyBuckets:
                return None
            return (totals.human, totals.ai, totals.bot), _counted(rows, "start"), False


def expected(rows: list[Row], query: Query, form: Form, loads: Sequence[Row] = ()) -> Answer | None:
    """Return the answer of the model; None for too many buckets."""
    rows = model.with_evidence(rows, loads)
    selected = model.matching(rows, query)
    totals = model.totals(selected)
    match form:
        case Series(interval):
            counted = model.series(rows, query, interval, form.zone_info)
            return None if counted is None else (totals, counted, False)
        case Views(offset, limit):
            counted = model.views(selected)
        case Breakdown(by, offset, limit):
            counted = model.breakdown(selected, by)
    return totals, counted[offset : offset + limit], offset + limit < len(counted)


def _of_page(page: ReportPage, name: str) -> Answer:
    return (page.totals.human, page.totals.ai, page.totals.bot), _counted(page.rows, name), page.has_more


def _counted(rows: pa.Table, name: str) -> Counted:
    assert rows.column_names == [name, "human", "ai", "bot", "total"]
    listed = rows.to_pylist()
    assert all(row["total"] == row["human"] + row["ai"] for row in listed)
    return [(row[name], (row["human"], row["ai"], row["bot"])) for row in listed]


def added_up(counted: Counted) -> model.Views:
    """Return the sum of the views of all rows."""
    human, ai, bot = (sum(views[i] for _, views in counted) for i in range(3))
    return human, ai, bot


@dataclass
class Remembered:
    """A moment, its snapshot in one reader, its hits, and the numbers of calls that delete rows, and did, before it."""

    text: str
    taken_s: float
    snapshot: Snapshot
    reports: Reports
    rows: list[Row]
    deletions: int
    erasures: int


class Lake(RuleBasedStateMachine):
    """Posts, loads, maintenance and restarts in any order. Two readers answer, like two server processes."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = temporary.folder()
        self.site = Site(Path(self.folder.name) / "data")
        self.now_s = time.time()
        self.caches_bytes = [CACHE_BYTES, 0]
        self.readers: list[Reports] = []
        self.posted: list[Row] = []
        self.remembered: list[Remembered] = []
        self.chance = seeded(0)
        self.deletions = self.erasures = 0
        self.is_reclassified = False
        self.policies: dict[str, Periods] = dict.fromkeys(generated.PROJECTS, ())

    def new_reader(self, index: int) -> Reports:
        reader = SnapshotReader(self.site.hot_log, self.site.root, lambda: self.now_s)
        return Reports(reader, self.site.root, self.site.spill, self.caches_bytes[index], self.policies.__getitem__)

    def query(self, chance: Random) -> Query:
        """Return a random query. The model reads the policy from its filters; the reports know it by the project."""
        return self.under_policy(generated.query(chance))

    def under_policy(self, query: Query) -> Query:
        return replace(query, filters=query.filters.but(policy=self.policies[query.project]))

    def teardown(self) -> None:
        for reports in self.readers:
            reports.close()
        self.site.close()
        self.folder.cleanup()

    def check(self, reports: Reports, snapshot: Snapshot, rows: list[Row], query: Query, form: Form) -> None:
        """Compare an answer with the model."""
        assert answered(reports, snapshot, query, form) == expected(rows, query, form)

    # What a service and its owner do

    @initialize(chance=generated.chances, cache_bytes=st.sampled_from(SMALL_CACHES_BYTES))
    def begin(self, chance: Random, cache_bytes: int) -> None:
        self.caches_bytes[1] = cache_bytes
        self.readers = [self.new_reader(0), self.new_reader(1)]
        self.stage(chance, 300, 40)
        self.load(is_killed=False)

    @rule(chance=generated.chances, count=st.integers(1, 12))
    def post(self, chance: Random, count: int) -> None:
        posted = [generated.row(chance) for _ in range(count)]
        self.site.post(*posted)
        self.posted = [*self.posted, *posted]

    @rule(chance=generated.chances, count=st.sampled_from([1, 20, 300, 1_500]), paths=st.sampled_from([2, 40, 400]))
    def stage(self, chance: Random, count: int, paths: int) -> None:
        """Post rows in staged files, as an import does."""
        posted = generated.rows(chance, count, paths)
        self.site.stage(posted)
        self.posted = [*self.posted, *posted]

    @rule(is_killed=st.booleans())
    def load(self, is_killed: bool) -> None:
        """Load, perhaps as a loader that is killed between its commits to the two tables."""
        on_point = _die_before_asset_loads if is_killed else _go_on
        with suppress(Died):
            load.load(self.site.hot, self.site.root, 0, on_point, lambda: self.now_s)

    def begin_command(self) -> None:
        """Prepare a command that loads by the clock of the machine: load the waiting hits by `now_s`.

        If `now_s` is far from the clock of the machine, the command deletes loaded batches, as after a change of the
        clock by AS_OF_S.
        """
        load.load(self.site.hot, self.site.root, 0, now=lambda: self.now_s)
        self.deletions += abs(time.time() - self.now_s) > AS_OF_S / 2

    @rule(small_files_max=st.integers(0, 1))
    def compact(self, small_files_max: int) -> None:
        self.site.compact(small_files_max)

    @rule(task=st.sampled_from(["vacuum", "rebuild rollups"]))
    def maintain(self, task: str) -> None:
        match task:
            case "vacuum":
                self.begin_command()
                compact.vacuum(self.site.hot, self.site.root, 0)
                upkeep.vacuum_rollups(self.site.hot, self.site.root, 0)
            case "rebuild rollups":
                rollups.rebuild(self.site.hot, self.site.root, self.site.share, NOW.date(), 0)

    @rule(month=st.none() | st.sampled_from(generated.MONTHS))
    def write_rollups(self, month: str | None) -> None:
        """Write the rollup of one month, or of each month that needs one."""
        if month is None:
            rollups.write_due(self.site.hot, self.site.root, self.site.share, NOW.date(), 0, settle_s=0)
            return
        files = delta_table.list_files(self.site.table(HITS_TABLE), HITS_TABLE)
        if of_month := [file for file in files if file.partition[:7] == month]:
            write_rollup(self.site.root, self.site.database, month, of_month)

    @rule(project=st.sampled_from(generated.PROJECTS))
    def delete_project(self, project: str) -> None:
        erase.erase_hits(self.site.hot, self.site.root, self.site.share, erase.Chosen(project), 0)
        self.retain(lambda row: row["project_id"] != project)

    @rule(days=st.sampled_from([15, 100, 250, 10_000]))
    def delete_old_days(self, days: int) -> None:
        erase.erase_before(self.site.hot, self.site.root, NOW.date(), days, 0)
        first = NOW.date() - timedelta(days=days)
        self.retain(lambda row: row["ts"].date() >= first)

    def retain(self, condition: Callable[[Row], bool]) -> None:
        retained = [row for row in self.posted if condition(row)]
        self.deletions += 1
        self.erasures += len(retained) < len(self.posted)
        self.posted = retained

    @precondition(lambda self: not self.is_reclassified)
    @rule()
    def reclassify(self) -> None:
        """Apply other rules, once in each sequence: it takes 0.2 s for each day that has a hit."""
        self.is_reclassified = True
        self.begin_command()
        reclassify.reclassify(self.site.hot, self.site.root, self.site.share, RULES, 0)
        self.posted = [reclassified(row) for row in self.posted]

    @rule(chance=generated.chances, project=st.sampled_from(generated.PROJECTS))
    def set_policy(self, chance: Random, project: str) -> None:
        self.policies[project] = generated.policy(chance)

    @rule(index=st.integers(0, 1))
    def restart(self, index: int) -> None:
        """Replace a reader, as a server process that is killed."""
        self.readers[index].close()
        self.readers[index] = self.new_reader(index)

    # What the reports answer

    @precondition(lambda self: self.readers)
    @invariant()
    def reports_equal_the_model(self) -> None:
        """Ask each reader for the newest counts, and for those of an earlier snapshot, as a slow request does."""
        for reports in self.readers:
            snapshot = reports.take()
            everything = Query(self.chance.choice(generated.PROJECTS), FIRST, None, Filters(), NOW)
            self.check(reports, snapshot, self.posted, self.under_policy(everything), Views(0, 50))
            self.ask(reports, snapshot, self.posted, 2)
        if self.remembered:
            remembered = self.chance.choice(self.remembered)
            if remembered.reports in self.readers:
                self.ask(remembered.reports, remembered.snapshot, remembered.rows, 3)

    def ask(self, reports: Reports, snapshot: Snapshot, rows: list[Row], count: int) -> None:
        """Compare answers to random questions with the model."""
        for _ in range(count):
            self.check(reports, snapshot, rows, self.query(self.chance), generated.form(self.chance))

    @rule(chance=generated.chances, limit=st.sampled_from([1, 2, 5, 50]))
    def read_all_pages(self, chance: Random, limit: int) -> None:
        """Read the pages of a moment on both readers in turn, while hits arrive and others read the newest counts."""
        self.post(chance, 12)
        self.remember(chance.randrange(2))
        moment = self.remembered[-1].snapshot.moment
        query, by = self.query(chance), chance.choice([None, None, *generated.BY])
        totals, counted, _ = _some(expected(self.posted, query, Breakdown(by, 0, ALL) if by else Views(0, ALL)))
        offsets = range(0, len(counted) or 1, max(limit, len(counted) // 8))
        rows: Counted = []
        for number, offset in enumerate(offsets):
            self.post(chance, 6)
            reports = self.readers[number % 2]
            form = Breakdown(by, offset, offsets.step) if by else Views(offset, offsets.step)
            self.check(reports, reports.take(), self.posted, query, form)
            page_totals, page, has_more = _some(answered(reports, reports.take(moment), query, form))
            assert (page_totals, has_more) == (totals, number + 1 < len(offsets))
            rows += page
        assert rows == counted
        assert not by or added_up(rows) == totals

    @rule(chance=generated.chances)
    def read_all_rows(self, chance: Random) -> None:
        """Read all rows at once, as a download does."""
        reports = chance.choice(self.readers)
        snapshot, query, by = reports.take(), self.query(chance), chance.choice([None, None, *generated.BY])
        totals, read = reports.all_breakdown(snapshot, query, by) if by else reports.all_views(snapshot, query)
        rows = [row for batch in read for row in _counted(pa.Table.from_batches([batch]), "value" if by else "path")]
        whole = expected(self.posted, query, Breakdown(by, 0, ALL) if by else Views(0, ALL))
        assert ((totals.human, totals.ai, totals.bot), rows, False) == whole

    @rule(chance=generated.chances)
    def split(self, chance: Random) -> None:
        """Add up the answers for two parts of a range."""
        reports, query, by = chance.choice(self.readers), self.query(chance), chance.choice(generated.BY)
        snapshot = reports.take()
        start, middle, end = sorted(generated.bound(chance) for _ in range(3))
        whole, left, right = (
            dict(_some(answered(reports, snapshot, replace(query, start=first, end=last), Breakdown(by, 0, ALL)))[1])
            for first, last in ((start, end), (start, middle), (middle, end))
        )
        assert whole == {
            value: added_up([(value, left.get(value, model.ZERO)), (value, right.get(value, model.ZERO))])
            for value in {*left, *right}
        }

    @rule(chance=generated.chances, name=st.sampled_from(generated.FILTERED))
    def filter(self, chance: Random, name: str) -> None:
        """Compare the totals with the sum over the values of a filter, and with the breakdown by it."""
        reports, query = chance.choice(self.readers), self.query(chance)
        snapshot = reports.take()

        def totals_of(value: str | None) -> model.Views:
            filters = query.filters.but(**{name: value})
            return _some(answered(reports, snapshot, replace(query, filters=filters), Views(0, 1)))[0]

        if name == "traffic":
            assert totals_of(None) == added_up([(value, totals_of(value)) for value in model.TRAFFIC])
            return
        query = replace(query, filters=query.filters.but(**{name: None}))
        totals, parts, _ = _some(answered(reports, snapshot, query, Breakdown(name, 0, ALL)))
        assert totals == added_up(parts)
        for value, views in parts[:8]:
            assert value is None or value.endswith("*") or totals_of(value) == views

    @rule(chance=generated.chances)
    def apply_each_policy(self, chance: Random) -> None:
        """Compare all paths under each source policy with the model, and the sum of two of them with all hits."""
        reports, query = chance.choice(self.readers), generated.query(chance)
        snapshot, policy, totals = reports.take(), self.policies[query.project], {}
        start = chance.choice(generated.DAYS).date()
        for name in POLICIES:
            self.policies[query.project] = (Period(date.min, name),)
            totals[name] = _some(answered(reports, snapshot, query, Views(0, 1)))[0]
            self.policies[query.project] = (Period(start, name),)
            for form in (Views(0, ALL), Breakdown("path", 0, ALL)):
                self.check(reports, snapshot, self.posted, self.under_policy(query), form)
        self.policies[query.project] = policy
        assert totals["all"] == added_up([(name, totals[name]) for name in ("beacon_only", "log_only")])

    @rule(chance=generated.chances)
    def add_up_series(self, chance: Random) -> None:
        """Compare the totals with the sum of the buckets, in several zones."""
        reports, query = chance.choice(self.readers), self.query(chance)
        snapshot = reports.take()
        totals = _some(answered(reports, snapshot, query, Views(0, 1)))[0]
        for interval in generated.INTERVALS:
            answer = answered(reports, snapshot, query, Series(interval, generated.zone(chance)))
            assert answer is None or answer[0] == totals == added_up(answer[1])

    @rule(chance=generated.chances)
    def cover(self, chance: Random) -> None:
        """Compare the first and the last hit of each source, and its days without a hit."""
        reports, project = chance.choice(self.readers), chance.choice(generated.PROJECTS)
        coverage = reports.source_coverage(reports.take(), project)
        of_project = [row for row in self.posted if row["project_id"] == project]
        by_source = {source: [row for row in of_project if row["source"] == source] for source in generated.SOURCES}
        assert [(each.source, each.first_hit, each.last_hit, list(each.missing_days)) for each in coverage.sources] == [
            (
                source,
                min(row["ts"] for row in rows),
                max(row["ts"] for row in rows),
                model.missing_days(rows)[-MISSING_DAYS_MAX:],
            )
            for source, rows in by_source.items()
            if rows
        ]

    # Moments

    @rule(index=st.integers(0, 1))
    def remember(self, index: int) -> None:
        snapshot = self.readers[index].take()
        self.remembered.append(
            Remembered(
                str(snapshot.moment),
                self.now_s,
                snapshot,
                self.readers[index],
                self.posted,
                self.deletions,
                self.erasures,
            )
        )

    @precondition(lambda self: self.remembered)
    @rule()
    def recall(self) -> None:
        """Ask both readers for each moment by its text."""
        for reports, remembered in itertools.product(self.readers, self.remembered[-4:]):
            is_expired = self.now_s - remembered.taken_s > AS_OF_S or remembered.erasures < self.erasures
            try:
                snapshot = reports.take(Moment.parse(remembered.text))
            except MomentExpired:
                assert is_expired or remembered.deletions < self.deletions
                continue
            assert not is_expired
            assert str(snapshot.moment) == remembered.text
            self.ask(reports, snapshot, remembered.rows, 4)

    @rule(seconds=st.sampled_from([1, 300, 601]))
    def wait(self, seconds: int) -> None:
        self.now_s += seconds

    # The stored data

    @rule()
    def count_directly(self) -> None:
        """Compare the owner's SQL view `hits`, row by row, and `daily_views`, and find no fault in the stored data."""
        reader = SnapshotReader(self.site.hot_log, self.site.root, columns=HOT.names)
        columns = ["project_id", "ts", *generated.BY_COLUMNS]
        with self.site.database.cursor() as cursor:
            sql_views.create_temporary(cursor, reader.take_all())
            hits = cursor.sql(f"SELECT {', '.join(columns)} FROM hits").to_arrow_table().to_pylist()
            daily = cursor.sql("SELECT project_id, date, path, traffic, agent, views FROM daily_views").fetchall()
        reader.close()
        assert Counter(tuple(row.values()) for row in hits) == Counter(
            tuple(row[name] for name in columns) for row in self.posted
        )
        assert sum((Counter({tuple(row): views}) for *row, views in daily), Counter()) == Counter(map(key, self.posted))
        assert self.site.faults() == []


class Died(Exception):
    """Signal that the loader ends here, in place of a kill."""


def _die_before_asset_loads(step: str) -> None:
    if step == "before commit of asset_loads":
        raise Died


def _go_on(step: str) -> None:
    """Do nothing."""


def _some(answer: Answer | None) -> Answer:
    assert answer is not None
    return answer


LAWS_MIN = 4
"""Minimum number of laws that are checked after each change."""
RECALLED_EVERY = 3
"""Number of changes after which moments are read again, which takes a second or more."""


@pytest.mark.parametrize("seed", range(rounds(3)))
def test_each_law_holds_after_each_change(seed: int) -> None:
    """Apply all changes once each, in random order, and after each change some laws, at night all of them.

    Few of the sequences that Hypothesis chooses have a given law after a given change.
    """
    chance, lake = seeded(seed), Lake()
    changes: list[Callable[[], object]] = [
        lambda: lake.stage(chance, 20, 40),
        lambda: lake.load(is_killed=False),
        lambda: lake.load(is_killed=True),
        lambda: lake.compact(0),
        lambda: lake.maintain("vacuum"),
        lambda: lake.write_rollups(None),
        lambda: lake.delete_project(chance.choice(generated.PROJECTS)),
        lambda: lake.delete_old_days(250),
        lambda: lake.set_policy(chance, chance.choice(generated.PROJECTS)),
        lambda: lake.restart(1),
    ]
    laws: list[Callable[[], object]] = [
        lambda: lake.read_all_pages(chance, chance.choice([1, 5, 50])),
        lambda: lake.read_all_rows(chance),
        lambda: lake.split(chance),
        lambda: lake.filter(chance, chance.choice(generated.FILTERED)),
        lambda: lake.apply_each_policy(chance),
        lambda: lake.add_up_series(chance),
        lambda: lake.cover(chance),
    ]
    try:
        lake.begin(chance, chance.choice(SMALL_CACHES_BYTES))
        lake.write_rollups(None)
        for number, change in enumerate(chance.sample(changes, len(changes)), start=1):
            lake.remember(chance.randrange(2))
            change()
            for law in some(chance, laws, LAWS_MIN):
                law()
            if number % RECALLED_EVERY == 0:
                lake.recall()
        lake.count_directly()
    finally:
        lake.teardown()


TestLake = Lake.TestCase
TestLake.settings = settings(
    max_examples=1 + rounds(6),  # the first sequence is the simplest one: one rule in all of its steps
    stateful_step_count=5 + rounds(20),
    phases=[Phase.generate, Phase.shrink],  # the phase `explain` takes minutes
)
