"""The rollup of a month equals a count of its rows in plain Python, whatever it was made from."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import temporary
from tests.rounds import rounds, seeded, some
from tests.warehouse.rollups.counted import cells, stored
from tests.warehouse.rollups.writing import write_rollup
from tests.warehouse.site import DAY, NOON, Row, Site, die_at, some_rows, view
from warehouse.lake.delta_table import File
from warehouse.lake.roots import LocalPath
from warehouse.lake.row_groups import ROWS_MAX
from warehouse.query import engine
from warehouse.rollups import catalog, writer
from warehouse.rollups.catalog import Rollup
from warehouse.tables import HITS_TABLE

MONTH = "2026-09"
MONTH_START = datetime(2026, 9, 1, tzinfo=UTC)
MONTH_US = 30 * 86_400 * 1_000_000


@pytest.fixture
def site(tmp_path: Path) -> Iterable[Site]:
    with closing(Site(tmp_path / "it's")) as site:
        yield site


def files(site: Site) -> list[File]:
    return [file for file in site.state(HITS_TABLE).files if file.partition.startswith(MONTH)]


def write(site: Site, on_point: Callable[[str], None] = lambda point: None) -> Rollup:
    return write_rollup(site.root, site.database, MONTH, files(site), on_point)


def check(rollup: Rollup, rows: Sequence[Row]) -> None:
    assert stored(rollup) == cells(rows)


def varied(row: int) -> Row:
    """Return a view whose columns differ from one number to the next."""
    return view(
        path=f"/{'é' * (row % 3)}{row % 5}",
        ts=MONTH_START + timedelta(microseconds=row * MONTH_US // 100),
        project_id=("site", "Site", "site-2")[row % 3],
        traffic=("human", "ai", "bot", "human")[row % 4],
        agent=(None, "GPTBot", "curl", None)[row % 4],
        operator=(None, "OpenAI", None, None)[row % 4],
        purpose=(None, "training", None, None)[row % 4],
        rule=f"rule-{row % 7}",
        verification=(None, "verified", None, None)[row % 4],
        source=("beacon", "server", "log")[row % 3 - row % 2],
        referrer_host=(None, "example.com", "é.example")[row % 3],
        utm_source=(None, "", "mail")[row % 3],
        utm_medium=(None, "email")[row % 2],
        utm_campaign=(None, "spring")[row % 2],
        utm_term=(None, "a b")[row % 3 % 2],
        utm_content=(None, "top")[row % 5 % 2],
        click=(None, "gclid")[row % 7 % 2],
        channel=(None, "Search", "Email")[row % 3],
        country=(None, "DE", "US")[row % 3],
        language=(None, "pt-BR")[row % 5 % 2],
        status=(None, 200, 304)[row % 3],
        format=(None, "html", "md", "text/markdown")[row % 4],
        browser=(None, "Firefox")[row % 2],
        visitor=(None, row % 7, -row % 7)[row % 3],
    )


def test_rollup_counts_all_files_of_the_month(site: Site) -> None:
    rows = [varied(number) for number in range(100)]
    site.post(*rows[:60])
    site.load()
    site.post(*rows[60:], view(ts=MONTH_START + 30 * DAY), view(ts=MONTH_START - timedelta(microseconds=1)))
    site.load()
    rollup = write(site)
    check(rollup, rows)
    assert rollup.rows == 100
    assert catalog.choose(site.root, files(site)) == catalog.ChosenRollups(
        (catalog.Part(rollup, frozenset(rollup.files), is_whole=True),), ()
    )


def test_nothing_but_the_cubes_is_in_the_folder(site: Site) -> None:
    site.post(view())
    site.load()
    rollup = write(site)
    assert {path.name for path in rollup.folder.iterdir()} == {*catalog.PARQUET, catalog.COVERAGE}


def test_paths_are_in_the_order_of_their_bytes(site: Site) -> None:
    paths = ["/Z", "/a", "/a/b", "/a-b", "/\N{LATIN SMALL LETTER E WITH ACUTE}", "/\N{PILE OF POO}", "/\uffee", "/%C3"]
    site.post(*(view(path) for path in paths))
    site.load()
    stored_paths = pq.read_table(write(site).folder / "paths.parquet")["path"].to_pylist()
    assert stored_paths == 2 * sorted(paths, key=str.encode)  # of the month, then of the day


@pytest.mark.long
def test_first_and_last_quarter_of_a_day_of_any_year(site: Site) -> None:
    last = timedelta(days=1, microseconds=-1)
    for start in (
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(1969, 12, 31, tzinfo=UTC),
        datetime(9999, 12, 30, tzinfo=UTC),
    ):
        site.post(view(ts=start), view(ts=start + last))
        site.load()
        day = start.date().isoformat()
        of_day = [file for file in site.state(HITS_TABLE).files if file.partition == day]
        rollup = write_rollup(site.root, site.database, day[:7], of_day)
        check(rollup, [view(ts=start), view(ts=start + last)])


@pytest.mark.long
def test_valid_days_are_copied_without_their_files_of_hits(site: Site) -> None:
    rows, later = some_rows(0, 30), [view(ts=NOON - DAY)]
    site.post(*rows)
    site.load()
    write(site)
    covered = files(site)
    site.post(*later)
    site.load()
    for file in covered:
        Path(file.path).unlink()
    check(write(site), [*rows, *later])


@pytest.mark.long
def test_day_that_was_replaced_is_counted_from_hits(site: Site) -> None:
    """None of its views is copied, and paths without a view any more are not in the new rollup."""
    site.post(view("/old", NOON), view("/b", NOON), view("/b", NOON + DAY))
    site.load()
    write(site)
    site.table(HITS_TABLE).delete("path = '/old'")
    site.post(view("/new", NOON))
    site.load()
    check(write(site), [view("/new", NOON), view("/b", NOON), view("/b", NOON + DAY)])


def test_deleted_project_is_not_in_the_next_rollup(site: Site) -> None:
    site.post(view("/secret", project_id="deleted"), view("/a", NOON + DAY))
    site.load()
    write(site)
    site.table(HITS_TABLE).delete("project_id = 'deleted'")
    rollup = write(site)
    check(rollup, [view("/a", NOON + DAY)])
    assert b"deleted" not in b"".join(path.read_bytes() for path in rollup.folder.iterdir())


@pytest.mark.long
def test_row_groups_are_small_and_their_statistics_separate_projects(site: Site) -> None:
    count = ROWS_MAX + 1
    site.stage([view(f"/{number}", project_id=("a", "b")[number == 0]) for number in range(count)])
    site.load()
    metadata = pq.read_metadata(write(site).folder / "paths.parquet")
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    bounds = [(each.num_rows, each.column(0).statistics.min, each.column(0).statistics.max) for each in groups]
    assert bounds == 2 * [(ROWS_MAX, "a", "a"), (1, "b", "b")]  # of the month, then of the day


def test_failed_write_leaves_no_folder_and_the_old_rollup_in_use(site: Site) -> None:
    site.post(view())
    site.load()
    old = write(site)
    site.post(view())
    site.load()
    Path(files(site)[-1].path).unlink()
    Path(files(site)[0].path).unlink()
    with pytest.raises(duckdb.IOException):
        write(site)
    assert [path.name for path in old.folder.parent.iterdir()] == [old.folder.name]


def test_unknown_source_is_an_error(site: Site) -> None:
    site.post(view(source="telepathy"))
    site.load()
    with pytest.raises(duckdb.ConversionException, match="telepathy"):
        write(site)


WRITE = """
from warehouse.lake import delta_table
from warehouse.tables import HITS_TABLE
from tests.warehouse.rollups.writing import write_rollup
files = delta_table.list_files(delta_table.open_table(root, HITS_TABLE), HITS_TABLE)
write_rollup(root, database, "2026-09", files, on_point)
"""


@pytest.fixture
def outdated(site: Site) -> Rollup:
    """Return the rollup of the first ten rows of the site, which has ten more."""
    site.post(*some_rows(0, 10))
    site.load()
    old = write(site)
    site.post(*some_rows(10, 10))
    site.load()
    return old


def check_after_kill(site: Site, old: Rollup, *, is_new: bool) -> None:
    (part,) = catalog.choose(site.root, files(site)).parts
    assert (part.rollup.folder.name != old.folder.name) is is_new
    check(part.rollup, some_rows(0, 20 if is_new else 10))
    assert len(catalog.list_folders(site.root, MONTH)) == 2
    check(write(site), some_rows(0, 20))


@pytest.mark.long
def test_writer_killed_at_any_point_leaves_the_old_rollup_or_the_new_one(
    site: Site, outdated: Rollup, tmp_path: Path
) -> None:
    copies = site.copies(tmp_path, lambda on_point: write(site, on_point))
    assert [point for point, _ in copies] == list(writer.POINTS)
    for point, folder in [*some(seeded(1), copies[:-1]), copies[-1]]:
        with closing(Site(folder, is_new=False)) as copied:
            check_after_kill(copied, outdated, is_new=point == "after coverage")


@pytest.mark.long
def test_killed_writer_leaves_the_old_rollup(site: Site, outdated: Rollup) -> None:
    die_at(site, WRITE, "before coverage")
    check_after_kill(site, outdated, is_new=False)


@pytest.mark.long
def test_key_changes_with_each_rollup(site: Site) -> None:
    keys = [catalog.written_key(site.root)]
    site.post(view())
    site.load()
    for _ in range(3):
        write(site)
        keys.append(catalog.written_key(site.root))
    assert len(set(keys)) == 4


@pytest.mark.night
def test_writer_spills_what_exceeds_the_memory_limit(site: Site, tmp_path: Path) -> None:
    rows = 60_000
    site.stage([view(f"/{number}/{'x' * 1_000}") for number in range(rows)])
    site.load()
    with closing(engine.connect(tmp_path / "spill", "80MB")) as database:
        rollup = write_rollup(site.root, database, MONTH, files(site))
    assert pq.read_metadata(rollup.folder / "paths.parquet").num_rows == 2 * rows
    with closing(engine.connect(tmp_path / "spill", "80MB")) as database:
        database.execute("SET temp_directory = ''")
        with pytest.raises(duckdb.OutOfMemoryException):
            write_rollup(LocalPath(tmp_path), database, MONTH, files(site))


texts = st.sampled_from([None, "", "a", "é"])
varied_rows = st.builds(
    lambda day, us, **columns: view(ts=MONTH_START + timedelta(days=day, microseconds=us), **columns),
    st.integers(0, 29),
    st.integers(0, 86_400_000_000 - 1),
    path=st.sampled_from(["/", "/a", "/é", "/a/b", "/Z"]),
    project_id=st.sampled_from(["a", "b", "a-b"]),
    traffic=st.sampled_from(["human", "ai", "bot"]),
    source=st.sampled_from(["beacon", "server", "log"]),
    status=st.sampled_from([None, 0, 200, -1]),
    format=st.sampled_from([None, "html", "md"]),
    visitor=st.sampled_from([None, 1, -2]),
    **dict.fromkeys(
        ("agent", "operator", "purpose", "verification", "browser", "os", "device", "referrer_host", "utm_source"),
        texts,
    ),
)


@pytest.mark.long
@given(st.lists(st.lists(varied_rows, min_size=1, max_size=8), min_size=1, max_size=4), st.data())
@settings(max_examples=rounds(10))
def test_rollups_of_any_rows_equal_a_count_in_python(posts: list[list[Row]], data: st.DataObject) -> None:
    with temporary.folder() as folder, closing(Site(Path(folder))) as site:
        posted: list[Row] = []
        for rows in posts:
            site.post(*rows)
            site.load()
            posted += rows
            if data.draw(st.booleans(), "compacted"):
                site.compact()
            if data.draw(st.booleans(), "deleted"):
                site.table(HITS_TABLE).delete("project_id = 'b' AND path = '/a'")
                posted = [row for row in posted if not (row["project_id"] == "b" and row["path"] == "/a")]
            if posted:
                check(write(site), posted)
