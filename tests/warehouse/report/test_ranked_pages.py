"""A page from the ranking is that of all paths, whatever is not ranked: edges, uncovered files and waiting rows."""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.rounds import rounds, seeded
from tests.warehouse.report.laws import reference
from tests.warehouse.rollups.writing import write_rollup
from tests.warehouse.site import Row, view
from warehouse.columns.filters import Filters
from warehouse.control.policy import POLICIES, Period
from warehouse.lake.roots import LocalPath
from warehouse.query import engine
from warehouse.query.moment import Moment
from warehouse.query.result_cache import ResultCache
from warehouse.query.snapshot import HOT_COLUMNS, Snapshot
from warehouse.query.time_range import FIRST, LAST, TimeRange
from warehouse.report import pages, ranked_pages
from warehouse.report.cells import Scope
from warehouse.report.results import Listing
from warehouse.report.statements import Statements
from warehouse.rollups import catalog, check, ranked
from warehouse.rollups.ranked import Ranking

MONTHS = [date(2026, 6, 1), date(2026, 7, 1), date(2026, 8, 1)]
READERS = ["human", "human", "ai", "bot"]
LISTINGS = [
    *(Listing(order) for order in ("total", "human", "ai", "bot", "path")),
    Listing(audience="ai_only"),
    Listing(audience="people_only"),
    Listing(with_bots=True),
]


def random_rows(chance: Random, number: int) -> list[Row]:
    """Return rows of three months: the first paths have most views."""
    return [
        view(
            f"/{min(chance.randrange(40), chance.randrange(40))}",
            datetime.combine(chance.choice(MONTHS), datetime.min.time(), UTC)
            + timedelta(days=chance.randrange(30), minutes=chance.randrange(1440)),
            traffic=chance.choice(READERS),
            source=chance.choice(["beacon", "log"]),
            format=chance.choice([None, "markdown"]),
            project_id=chance.choice(["site", "site", "site", "other"]),
            visitor=chance.choice([None, *range(9)]),
        )
        for _ in range(number)
    ]


def instant(chance: Random) -> datetime:
    midnight = datetime(2026, 5, 31, tzinfo=UTC) + timedelta(days=chance.randrange(95))
    return chance.choice([FIRST, LAST, midnight, midnight, midnight + timedelta(minutes=chance.randrange(1440))])


def random_scope(chance: Random) -> Scope:
    start, end = sorted([instant(chance), instant(chance)])
    days = sorted(chance.sample(range(95), chance.choice([0, 0, 1, 2])))
    policy = tuple(Period(date(2026, 5, 31) + timedelta(days=day), chance.choice(POLICIES)) for day in days)
    path = chance.choice([None, None, None, "/1*", "*2*", "/3"])
    traffic, source = chance.choice([None, None, None, "human", "ai", "bot"]), chance.choice([None, None, None, "log"])
    evidence = chance.choice([None, None, None, "script", "none"])
    filters = Filters(policy, path=path, traffic=traffic, source=source, evidence=evidence)
    return Scope("site", TimeRange(start, end), filters)


@pytest.mark.long
@pytest.mark.parametrize("number", [pytest.param(0, marks=pytest.mark.night), 3])
def test_page_from_the_ranking_is_that_of_all_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    read, ends = Ranking.read, set[int | None]()

    def noted(ranking: Ranking, path: str, project: str, end: int | None, columns: Sequence[str]) -> pa.Table:
        ends.add(end)
        return read(ranking, path, project, end, columns)

    monkeypatch.setattr(Ranking, "read", noted)
    is_large = number == 3
    if is_large:
        monkeypatch.setattr(ranked_pages, "ROWS_MAX", 0)
    root = LocalPath(tmp_path)
    chance = seeded(number)
    database = engine.connect(tmp_path / "spill")
    ranked_files = reference.write_hits(tmp_path / "hits", random_rows(chance, 400), "ranked")
    by_month = defaultdict(list)
    for file in ranked_files:
        by_month[file.partition[:7]].append(file)
    for month, files in by_month.items():
        write_rollup(root, database, month, files)
    ranked.write(root, database, catalog.choose(root, ranked_files).parts, steps=(3, 6, 12))
    later = reference.write_hits(tmp_path / "hits", random_rows(chance, chance.randrange(60)), "later")
    removed = chance.sample(ranked_files, chance.randrange(3))  # their months are not whole any more
    hot = reference.hot(random_rows(chance, chance.randrange(30))).select(HOT_COLUMNS)
    files = [file for file in (*ranked_files, *later) if file not in removed]
    snapshot = Snapshot(Moment(1, 1, 0, 0), tuple(files), hot)
    found: list[Ranking | None] = [ranked.find(root), None]
    assert found[0] is not None
    assert found[0].record.bounds["site"][0][-1] > 0
    with_ranking, without = (
        Statements(
            tmp_path / "spill",
            ResultCache(0),
            lambda snapshot: catalog.choose(root, snapshot.files),
            lambda ranking=ranking: ranking,  # type: ignore[misc]
        )
        for ranking in found
    )
    for _ in range(rounds(120)):
        scope, listing = random_scope(chance), chance.choice([Listing(), *LISTINGS])
        offset, limit = chance.choice([0, 0, 1, 5, 30]), chance.choice([1, 1, 2, 2, 5, 50])
        page = pages.page(with_ranking, snapshot, scope, offset, limit, listing)
        expected = pages.page(without, snapshot, scope, offset, limit, listing)
        assert page.rows.to_pylist() == expected.rows.to_pylist(), (scope, listing, offset, limit)
        assert (page.totals, page.has_more) == (expected.totals, expected.has_more)
    assert ends == ({3, 6, 12} if is_large else {3, 6, 12, None})
    ends.clear()
    noon = datetime(2026, 7, 15, 12, tzinfo=UTC)
    for hours in (TimeRange(noon, noon + timedelta(hours=6)), TimeRange(LAST - timedelta(days=9), LAST)):
        pages.page(with_ranking, snapshot, Scope("site", hours, Filters()), 0, 1, Listing())
    assert not ends
    for each in (with_ranking, without, database):
        each.close()


@pytest.mark.parametrize(
    ("ranked_views", "waiting", "expected"),
    [
        ({"/a": 10, "/b": 8, "/c": 6, "/d": 4, "/e": 2}, {"/e": 9}, ["/e", "/a"]),
        ({"/b": 10, "/c": 6, "/d": 6, "/a": 4}, {"/a": 2}, ["/b", "/a"]),
    ],
    ids=["waiting views make a last path the first", "unread path with the views of the page's last is before it"],
)
def test_unread_path_is_on_the_page_that_it_belongs_to(
    tmp_path: Path, ranked_views: dict[str, int], waiting: dict[str, int], expected: list[str]
) -> None:
    noon = datetime(2026, 6, 15, 12, tzinfo=UTC)
    of_june, hot = (
        [view(path, noon, project_id="site") for path, count in counts.items() for _ in range(count)]
        for counts in (ranked_views, waiting)
    )
    [page] = ranked_pages_of(tmp_path, of_june, hot, [TimeRange(FIRST, LAST)], 2)
    assert [path for path, _ in page] == expected


def test_views_before_the_range_are_subtracted_from_those_of_its_month_and_of_earlier_months(tmp_path: Path) -> None:
    june, july_9, july_10 = (datetime(2026, month, day, 12, tzinfo=UTC) for month, day in ((6, 30), (7, 9), (7, 10)))
    views = {"/a": (9, 1, 1), "/b": (1, 8, 2), "/c": (1, 1, 7)}  # in June, until 9 July, from 10 July on
    rows = [
        view(path, at)
        for path, counts in views.items()
        for at, count in zip((june, july_9, july_10), counts, strict=True)
        for _ in range(count)
    ]
    ranges = [TimeRange(datetime(2026, 7, day, tzinfo=UTC), datetime(2026, 8, 1, tzinfo=UTC)) for day in (1, 10)]
    from_july_1, from_july_10 = ranked_pages_of(tmp_path, rows, [], ranges, 3)
    assert from_july_1 == [("/b", 10), ("/c", 8), ("/a", 2)]
    assert from_july_10 == [("/c", 7), ("/b", 2), ("/a", 1)]


def ranked_pages_of(
    folder: Path, ranked_rows: list[Row], hot: list[Row], ranges: Sequence[TimeRange], limit: int
) -> list[list[tuple[str, int]]]:
    """Return the first page of each range, as paths with their views, from a ranking of rows and from waiting rows."""
    root = LocalPath(folder)
    files = reference.write_hits(folder / "hits", ranked_rows, "ranked")
    with closing(engine.connect(folder / "spill")) as database:
        for month in sorted({file.partition[:7] for file in files}):
            write_rollup(root, database, month, [file for file in files if file.partition[:7] == month])
        ranked.write(root, database, catalog.choose(root, files).parts, steps=(4,))
    cache, ranking = ResultCache(0), ranked.find(root)
    snapshot = Snapshot(Moment(1, 1, 0, 0), tuple(files), reference.hot(hot).select(HOT_COLUMNS))
    of_files = Statements(
        folder / "spill", cache, lambda snapshot: catalog.choose(root, snapshot.files), lambda: ranking
    )
    with closing(of_files) as statements:
        listed = (
            pages.page(statements, snapshot, Scope("site", time_range, Filters()), 0, limit, Listing()).rows
            for time_range in ranges
        )
        return [list(zip(*rows.select(["path", "total"]).to_pydict().values(), strict=True)) for rows in listed]


@pytest.mark.long
def test_ranking_of_other_rollups_is_not_used(tmp_path: Path) -> None:
    root = LocalPath(tmp_path)
    database = engine.connect(tmp_path / "spill")
    files = reference.write_hits(tmp_path / "hits", random_rows(seeded(1), 50), "hits")
    *of_june, last = [file for file in files if file.partition < "2026-07"]
    write_rollup(root, database, "2026-06", of_june)
    ranked.write(root, database, catalog.choose(root, of_june).parts)
    first = ranked.find(root)
    assert first is not None
    assert all(map(first.has, catalog.choose(root, of_june).parts))
    of_june.append(last)
    write_rollup(root, database, "2026-06", of_june)
    assert not any(map(first.has, catalog.choose(root, of_june).parts))
    assert not any(map(first.has, catalog.choose(root, of_june[1:]).parts))
    ranked.write(root, database, catalog.choose(root, of_june).parts)
    newest = ranked.find(root)
    assert newest is not None
    assert newest.folder != first.folder
    database.close()


@pytest.mark.long
def test_doctor_finds_a_wrong_ranking(tmp_path: Path) -> None:
    root, database = LocalPath(tmp_path), engine.connect(tmp_path / "spill")
    files = reference.write_hits(root / "hits", random_rows(seeded(1), 50), "hits")
    for month in sorted({file.partition[:7] for file in files}):
        write_rollup(root, database, month, [file for file in files if file.partition[:7] == month])
    parts = catalog.choose(root, files).parts
    ranked.write(root, database, parts, steps=(3,))
    ranking = ranked.find(root)
    assert ranking is not None
    assert check.find_ranking_fault(database, ranking, parts) is None
    bounds = {project: [[*steps[0][:-1], steps[0][-1] - 1]] for project, steps in ranking.record.bounds.items()}
    wrong = Ranking(ranking.folder, msgspec.structs.replace(ranking.record, bounds=bounds))
    assert check.find_ranking_fault(database, wrong, parts) is not None
    for path, is_of_all_paths in ((ranking.months, False), (ranking.months, True), (ranking.days("2026-07"), False)):
        rows = pq.read_table(path, partitioning=None)
        is_wrong = pc.is_null(rows["path"]) if is_of_all_paths else pc.equal(rows["rank"], 1)
        pq.write_table(rows.filter(pc.invert(is_wrong)), path)
        assert check.find_ranking_fault(database, ranking, parts) is not None, (path, is_of_all_paths)
        pq.write_table(rows, path)
    assert check.find_ranking_fault(database, ranking, parts) is None
    database.close()
