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
from tests.rounds import rounds
from tests.warehouse.rollups.counted import (
    agent_cells,
    cells,
    dimensions,
    path_views,
    stored_agent_cells,
    stored_cells,
    stored_dimensions,
    stored_path_views,
)
from tests.warehouse.site import DAY, NOON, Row, Site, die_at, some_rows, view
from warehouse.lake.delta_table import HITS_TABLE, File
from warehouse.lake.roots import LocalPath
from warehouse.lake.row_groups import ROWS_MAX
from warehouse.query import engine
from warehouse.rollups import coverage, schema, writer
from warehouse.rollups.coverage import Rollup

MONTH = "2026-09"
MONTH_START = datetime(2026, 9, 1, tzinfo=UTC)
MONTH_US = 30 * 86_400 * 1_000_000


@pytest.fixture
def site(tmp_path: Path) -> Iterable[Site]:
    with closing(Site(tmp_path / "it's")) as site:
        yield site


def files(site: Site) -> list[File]:
    return [file for file in site.state(HITS_TABLE).files if file.partition.startswith(MONTH)]


def write(site: Site, on_step: Callable[[str], None] = lambda step: None) -> Rollup:
    return writer.write(site.root, site.database, MONTH, files(site), on_step)


def check(rollup: Rollup, rows: Sequence[Row]) -> None:
    assert stored_cells(rollup) == cells(rows)
    assert stored_agent_cells(rollup) == agent_cells(rows)
    assert stored_path_views(rollup) == path_views(rows)
    assert stored_dimensions(rollup) == dimensions(rows)


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
        source=schema.SOURCES[row % 3 - row % 2],
        referrer_host=(None, "example.com", "é.example")[row % 3],
        utm_source=(None, "", "mail")[row % 3],
        status=(None, 200, 304)[row % 3],
        format=(None, "html")[row % 2],
        browser=(None, "Firefox")[row % 2],
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
    assert coverage.choose(site.root, files(site)) == coverage.Coverage(
        (coverage.Part(rollup, frozenset(rollup.files), is_whole=True),), ()
    )


def test_files_have_the_columns_of_the_schema_and_nothing_else_is_in_the_folder(site: Site) -> None:
    site.post(view())
    site.load()
    rollup = write(site)
    assert pq.read_schema(rollup.paths) == schema.PATHS
    assert pq.read_schema(rollup.days) == schema.DAYS
    assert pq.read_schema(rollup.agent_paths) == schema.AGENT_PATHS
    assert pq.read_schema(rollup.profiles) == schema.PROFILES
    assert pq.read_schema(rollup.path_views) == schema.PATH_VIEWS
    assert pq.read_schema(rollup.dimensions) == schema.DIMENSIONS
    assert {path.name for path in rollup.folder.iterdir()} == {*coverage.PARQUET, coverage.COVERAGE}


def test_paths_are_in_the_order_of_their_bytes(site: Site) -> None:
    paths = ["/Z", "/a", "/a/b", "/a-b", "/\N{LATIN SMALL LETTER E WITH ACUTE}", "/\N{PILE OF POO}", "/\uffee", "/%C3"]
    site.post(*(view(path) for path in paths))
    site.load()
    assert pq.read_table(write(site).paths)["path"].to_pylist() == sorted(paths, key=str.encode)


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
        rollup = writer.write(site.root, site.database, day[:7], of_day)
        check(rollup, [view(ts=start), view(ts=start + last)])


def test_valid_days_are_copied_without_their_files_of_hits(site: Site) -> None:
    rows = some_rows(0, 30)
    site.post(*rows)
    site.load()
    write(site)
    covered = files(site)
    site.post(*some_rows(30, 30))
    site.load()
    for file in covered:
        Path(file.path).unlink()
    check(write(site), [*rows, *some_rows(30, 30)])


def test_day_that_was_replaced_is_counted_from_hits(site: Site) -> None:
    """None of its views is copied, and paths without a view any more are not in the new rollup."""
    site.post(view("/old", NOON), view("/b", NOON), view("/b", NOON + DAY))
    site.load()
    write(site)
    site.table(HITS_TABLE).delete("path = '/old'")
    site.post(view("/new", NOON))
    site.load()
    rollup = write(site)
    check(rollup, [view("/new", NOON), view("/b", NOON), view("/b", NOON + DAY)])
    assert pq.read_table(rollup.paths)["path"].to_pylist() == ["/b", "/new"]


def test_deleted_project_is_not_in_the_next_rollup(site: Site) -> None:
    site.post(view("/secret", project_id="deleted"), view("/a", NOON + DAY))
    site.load()
    write(site)
    site.table(HITS_TABLE).delete("project_id = 'deleted'")
    rollup = write(site)
    check(rollup, [view("/a", NOON + DAY)])
    assert b"deleted" not in b"".join(path.read_bytes() for path in rollup.folder.iterdir())


def test_profile_of_deleted_views_is_not_in_the_next_rollup(site: Site) -> None:
    site.post(view(browser="Secret"), view("/a", NOON + DAY, browser="Firefox"))
    site.load()
    assert pq.read_table(write(site).profiles).num_rows == 2
    site.table(HITS_TABLE).delete("browser = 'Secret'")
    assert pq.read_table(write(site).profiles)["browser"].to_pylist() == ["Firefox"]


@pytest.mark.long
def test_row_groups_are_small_and_their_statistics_separate_projects(site: Site) -> None:
    count = ROWS_MAX + 1
    site.stage([view(f"/{number}", project_id=("a", "b")[number == 0]) for number in range(count)])
    site.load()
    metadata = pq.read_metadata(write(site).days)
    assert [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)] == [ROWS_MAX, 1]
    bounds = [metadata.row_group(index).column(0).statistics for index in range(2)]
    assert [(each.min, each.max) for each in bounds] == [("a", "a"), ("b", "b")]


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


@pytest.mark.parametrize("column", ["source", "traffic"])
def test_unknown_value_is_an_error(site: Site, column: str) -> None:
    site.post(view(**{"agent": "GPTBot", column: "telepathy"}))
    site.load()
    with pytest.raises(duckdb.ConversionException, match="telepathy"):
        write(site)


WRITE = """
from warehouse.lake import delta_table
from warehouse.rollups import writer
files = delta_table.list_files(delta_table.open_table(root, delta_table.HITS_TABLE), delta_table.HITS_TABLE)
writer.write(root, database, "2026-09", files, on_step)
"""


@pytest.mark.long
@pytest.mark.parametrize("step", writer.STEPS)
def test_killed_writer_leaves_the_old_rollup_or_the_new_one(site: Site, step: str) -> None:
    site.post(*some_rows(0, 10))
    site.load()
    old = write(site)
    site.post(*some_rows(10, 10))
    site.load()
    die_at(site, WRITE, step)
    (part,) = coverage.choose(site.root, files(site)).parts
    is_new = step == "after coverage"
    assert (part.rollup.folder != old.folder) is is_new
    check(part.rollup, some_rows(0, 20 if is_new else 10))
    assert len(coverage.list_folders(site.root, MONTH)) == 2
    check(write(site), some_rows(0, 20))


def test_key_changes_with_each_rollup(site: Site) -> None:
    keys = [coverage.written_key(site.root)]
    site.post(view())
    site.load()
    for _ in range(3):
        write(site)
        keys.append(coverage.written_key(site.root))
    assert len(set(keys)) == 4


@pytest.mark.long
def test_writer_spills_what_exceeds_the_memory_limit(site: Site, tmp_path: Path) -> None:
    rows = 100_000
    site.stage([view(f"/{number}/{'x' * 300}") for number in range(rows)])
    site.load()
    with closing(engine.connect(tmp_path / "spill", "80MB")) as database:
        assert pq.read_metadata(writer.write(site.root, database, MONTH, files(site)).paths).num_rows == rows
    with closing(engine.connect(tmp_path / "spill", "80MB")) as database:
        database.execute("SET temp_directory = ''")
        with pytest.raises(duckdb.OutOfMemoryException):
            writer.write(LocalPath(tmp_path), database, MONTH, files(site))


texts = st.sampled_from([None, "", "a", "é"])
varied_rows = st.builds(
    lambda day, us, **columns: view(ts=MONTH_START + timedelta(days=day, microseconds=us), **columns),
    st.integers(0, 29),
    st.integers(0, 86_400_000_000 - 1),
    path=st.sampled_from(["/", "/a", "/é", "/a/b", "/Z"]),
    project_id=st.sampled_from(["a", "b", "a-b"]),
    traffic=st.sampled_from(schema.TRAFFIC),
    source=st.sampled_from(schema.SOURCES),
    status=st.sampled_from([None, 0, 200, -1]),
    **dict.fromkeys(
        ("agent", "operator", "purpose", "browser", "os", "device", "referrer_host", "utm_source", "format"), texts
    ),
)


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
