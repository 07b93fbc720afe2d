"""Each store records its schema version, runs the migrations it needs once, and refuses a newer version unchanged."""

import re
import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from api.dashboard.robots import texts
from api.dashboard.robots.texts import RobotsText
from tests.stores.sql import column, opened
from tests.warehouse.site import Site, die_at, some_rows
from warehouse import migrations
from warehouse.control import database, projects
from warehouse.control import schema_migrations as control_migrations
from warehouse.database.pool import Pool, PoolError
from warehouse.database.statements import Connection
from warehouse.database.transaction import transaction
from warehouse.errors import ControlUnreadable, StoreTooNew
from warehouse.folder import sqlite_url
from warehouse.hotlog import batches, loads, schema_migrations
from warehouse.hotlog.loads import Synced
from warehouse.integrity import durability
from warehouse.lake import delta_table, table_schema
from warehouse.lake.roots import LocalPath
from warehouse.migrations import Migration
from warehouse.query import engine as query
from warehouse.schema import DAILY_VIEWS
from warehouse.tables import HITS_TABLE, REQUESTS_TABLE, TABLES

CONTROL_MIGRATIONS = (
    Migration(2, migrations.add_column("projects", "title TEXT")),
    Migration(3, migrations.add_column("projects", "colour TEXT")),
)
HOT_MIGRATIONS = (
    Migration(2, migrations.add_column("batches", "size INTEGER")),
    Migration(3, migrations.add_column("no_such_table", "x TEXT")),
)
TITLE = pa.field("title", pa.string(), metadata={"comment": "title of the page"})
RELEASED = table_schema.MIGRATIONS["hits"]
WITH_TITLE = migrations.newest(RELEASED) + 1
TABLE_MIGRATIONS = {
    **table_schema.MIGRATIONS,
    "hits": (*RELEASED, Migration(WITH_TITLE, table_schema.add_columns(TITLE))),
}
"""The released migrations and another one. The tables of the fixture `older` have the columns of the released ones."""
VERSION = 2 + len(TABLE_MIGRATIONS["hits"])
"""Version of the Delta table after all migrations, of which the last has a commit of its column, too."""
TITLED = replace(HITS_TABLE, schema=HITS_TABLE.schema.append(TITLE))


def fail(connection: object) -> None:
    raise ZeroDivisionError


def columns(engine: Pool, table: str) -> list[str]:
    with engine.connect() as connection:
        if isinstance(connection, sqlite3.Connection):
            return column(engine, "SELECT name FROM pragma_table_info(:table)", table=table)
    order = "SELECT column_name FROM information_schema.columns WHERE table_name = :table ORDER BY ordinal_position"
    return column(engine, order, table=table)


def recorded(engine: Pool) -> int:
    with engine.connect() as connection:
        return int(connection.execute("SELECT version FROM schema_version").fetchone()[0])


def project_ids(engine: Pool) -> list[str]:
    return column(engine, "SELECT id FROM projects")


def old_control(url: str) -> None:
    """Create a control database as 0.1.0 did: one project, and no table of versions."""
    engine = opened(url)
    with engine.transaction() as connection:
        connection.execute(
            "CREATE TABLE projects (id VARCHAR(63) PRIMARY KEY, origins JSON NOT NULL, created_s BIGINT NOT NULL, "
            "is_ending BOOLEAN NOT NULL)"
        )
        connection.execute("INSERT INTO projects VALUES ('site', '[]', 1, false)")
    engine.close()


def test_new_control_database_is_created_at_the_newest_version(database_url: str) -> None:
    engine = database.connect(database_url, CONTROL_MIGRATIONS)
    assert recorded(engine) == 3
    assert "title" not in columns(engine, "projects")  # the present definition created the table, not the migrations
    engine.close()


def test_control_database_of_the_first_release_takes_every_step_once(database_url: str) -> None:
    old_control(database_url)
    for known in ((), CONTROL_MIGRATIONS[:1], CONTROL_MIGRATIONS, CONTROL_MIGRATIONS):
        engine = database.connect(database_url, known)
        assert recorded(engine) == 1 + len(known)
        assert columns(engine, "projects")[4:] == ["title", "colour"][: len(known)]
        assert project_ids(engine) == ["site"]
        engine.close()


def test_older_projects_get_internal_ids_that_differ(database_url: str) -> None:
    old_control(database_url)
    engine = opened(database_url)
    with engine.transaction() as connection:
        connection.execute("INSERT INTO projects VALUES ('other', '[]', 1, false)")
    engine.close()
    engine = database.connect(database_url)
    internal_ids = [project.internal_id for project in projects.list_all(engine)]
    assert [len(each) for each in internal_ids] == [32, 32]
    assert len(set(internal_ids)) == 2
    engine.close()


def test_robots_txt_of_an_older_release_is_the_first_version_of_its_project(database_url: str) -> None:
    old_control(database_url)
    engine = opened(database_url)
    with engine.transaction() as connection:
        connection.execute(
            "CREATE TABLE robots_texts (project_id VARCHAR(63) PRIMARY KEY, content TEXT, saved_s BIGINT)"
        )
        connection.execute("INSERT INTO robots_texts VALUES ('site', 'User-agent: *', 1790000000)")
    engine.close()
    engine = database.connect(database_url)
    assert texts.versions(engine, "site") == [RobotsText("User-agent: *", 1_790_000_000)]
    assert columns(engine, "robots_texts") == []
    engine.close()


def test_control_step_that_fails_leaves_the_version_before_it(database_url: str) -> None:
    old_control(database_url)

    def add_and_fail(connection: Connection) -> None:
        CONTROL_MIGRATIONS[1].apply(connection)
        fail(connection)

    with pytest.raises(ZeroDivisionError):
        database.connect(database_url, (CONTROL_MIGRATIONS[0], Migration(3, add_and_fail)))
    engine = database.connect(database_url, CONTROL_MIGRATIONS[:1])
    assert recorded(engine) == 2
    assert columns(engine, "projects")[4:] == ["title"]
    engine.close()


def test_control_migrations_run_once_if_several_processes_start_together(database_url: str) -> None:
    old_control(database_url)
    together = threading.Barrier(6)
    faults: list[BaseException] = []

    def start() -> None:
        together.wait()
        try:
            database.connect(database_url, CONTROL_MIGRATIONS).close()
        except PoolError as error:
            faults.append(error)

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    engine = database.connect(database_url, CONTROL_MIGRATIONS)
    assert columns(engine, "projects")[4:] == ["title", "colour"]
    engine.close()


def test_newer_control_database_is_refused(database_url: str) -> None:
    engine = database.connect(database_url)
    with engine.transaction() as connection:
        connection.execute("UPDATE schema_version SET version = 99")
    engine.close()
    known = migrations.newest(control_migrations.MIGRATIONS)
    for refuse in (database.connect, database.read_identity):
        with pytest.raises(StoreTooNew, match=rf"^the control database has schema version 99, .* up to {known}: inst"):
            refuse(database_url)


def test_control_database_restored_without_its_version_is_refused(database_url: str) -> None:
    engine = database.connect(database_url)
    with engine.transaction() as connection:
        connection.execute("DELETE FROM schema_version")
    engine.close()
    with pytest.raises(ControlUnreadable, match="records no schema version"):
        database.connect(database_url)


def test_check_for_a_newer_version_creates_no_file(tmp_path: Path) -> None:
    database.read_identity(sqlite_url(tmp_path / "control.sqlite"))
    batches.refuse_newer(tmp_path / "hot.sqlite")
    delta_table.refuse_newer(LocalPath(tmp_path / "lake"))
    assert list(tmp_path.iterdir()) == []


def version_of(hot_log: Path) -> int:
    with closing(sqlite3.connect(hot_log)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def batch_columns(hot_log: Path) -> list[str]:
    with closing(sqlite3.connect(hot_log)) as connection:
        return [name for _, name, *_ in connection.execute("PRAGMA table_info(batches)")]


def test_hot_log_takes_every_step_once_and_loses_no_hit(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.post(*some_rows(0, 3))
    site.hot.execute("PRAGMA user_version=0")  # as 0.1.0 left it
    site.close()
    for known in ((), HOT_MIGRATIONS[:1], HOT_MIGRATIONS, HOT_MIGRATIONS):
        with closing(batches.connect_file(site.hot_log, known=known)) as hot:
            assert batches.backlog(hot).rows == 3
        assert version_of(site.hot_log) == 1 + len(known)
        assert ("size" in batch_columns(site.hot_log)) == (len(known) > 0)


def test_new_hot_log_is_created_at_the_newest_version(tmp_path: Path) -> None:
    batches.connect_file(tmp_path / "hot.sqlite", known=HOT_MIGRATIONS).close()
    assert version_of(tmp_path / "hot.sqlite") == 3
    assert "size" not in batch_columns(tmp_path / "hot.sqlite")  # the definition of today, and not the migrations


def test_hot_log_step_that_fails_changes_nothing(tmp_path: Path) -> None:
    batches.connect_file(tmp_path / "hot.sqlite", known=()).close()
    with pytest.raises(ZeroDivisionError):
        batches.connect_file(tmp_path / "hot.sqlite", known=(HOT_MIGRATIONS[0], Migration(3, fail)))
    assert version_of(tmp_path / "hot.sqlite") == 1
    assert "size" not in batch_columns(tmp_path / "hot.sqlite")


def test_hot_log_at_its_newest_version_is_opened_without_waiting_for_a_writer(tmp_path: Path) -> None:
    with closing(batches.connect(tmp_path / "hot.sqlite")) as writer, transaction(writer):
        batches.connect(tmp_path / "hot.sqlite").close()


def test_newer_hot_log_is_refused_and_not_changed(tmp_path: Path) -> None:
    with closing(batches.connect(tmp_path / "hot.sqlite")) as hot:
        hot.execute("PRAGMA user_version=99")
    before = (tmp_path / "hot.sqlite").read_bytes()
    known = migrations.newest(schema_migrations.MIGRATIONS)
    for refuse in (batches.connect, batches.refuse_newer):
        with pytest.raises(StoreTooNew, match=rf"^the hot log has schema version 99, .* versions up to {known}: inst"):
            refuse(tmp_path / "hot.sqlite")
    assert (tmp_path / "hot.sqlite").read_bytes() == before


@pytest.fixture
def older(tmp_path: Path) -> Site:
    """Yield a lake with rows whose tables record no version, as 0.1.0 left it."""
    site = Site(tmp_path)
    site.post(*some_rows(0, 9))
    site.load()
    for spec in TABLES:
        log = site.root / spec.name / "_delta_log" / f"{0:020}.json"
        log.write_text(re.sub('"readership.schemaVersion":"[0-9]"', '"a":"b"', log.read_text()))
        assert table_schema.PROPERTY not in site.table(spec).metadata().configuration
    return site


def property_of(table: DeltaTable) -> str | None:
    return table.metadata().configuration.get(table_schema.PROPERTY)


def test_table_takes_every_step_once_and_the_commits_are_synced(older: Site, synced: set[Path]) -> None:
    delta_table.create(older.root, TABLE_MIGRATIONS)
    table = delta_table.open_table(older.root, HITS_TABLE, TABLE_MIGRATIONS)
    assert property_of(table) == f"{WITH_TITLE}"
    assert [field.name for field in table.schema().fields][-1] == "title"
    log = older.root / "hits" / "_delta_log"
    assert {log, *(log / f"{version:020}.json" for version in range(2, VERSION + 1))} <= synced
    delta_table.create(older.root, TABLE_MIGRATIONS)
    assert delta_table.open_table(older.root, HITS_TABLE, TABLE_MIGRATIONS).version() == VERSION
    assert older.table(REQUESTS_TABLE).version() == 2  # one step
    older.close()


@pytest.mark.long
@pytest.mark.parametrize(
    ("step", "in_daily_views"),
    [("before commit of hits", 2), ("before commit of asset_loads", 1), ("after mark", 2)],
    ids=["ahead of hits", "behind hits", "with hits"],
)
def test_stored_daily_views_of_an_older_release_are_removed_and_each_hit_is_counted_once(
    tmp_path: Path, step: str, in_daily_views: int
) -> None:
    site = Site(tmp_path)
    site.post(*some_rows(0, 3))
    site.load()
    site.post(*some_rows(3, 3))
    die_at(site, "load.load(hot, root, 10, on_point)", step)
    with_daily_views(site, in_daily_views)
    site.close()
    with closing(Site(tmp_path, is_new=False)) as upgraded:
        assert schema_migrations.has_table(upgraded.hot, "recounts") is False
        durability.prepare(upgraded.hot, upgraded.root)
        assert not (upgraded.root / "daily_views").exists()
        upgraded.load()
        assert upgraded.event_ids() == [row["event_id"] for row in some_rows(0, 6)]
        assert upgraded.waiting() == 0
        assert upgraded.faults() == []


def with_daily_views(site: Site, offset: int) -> None:
    """Give a site the table `daily_views` with hot batches up to `offset`, and days to recount, as older releases."""
    older = replace(REQUESTS_TABLE, name="daily_views", schema=DAILY_VIEWS)
    table = DeltaTable.create(str(site.root / older.name), DAILY_VIEWS, partition_by=["month"])
    delta_table.append(table, DAILY_VIEWS.empty_table(), batches.node_id(site.hot), offset)
    site.table(HITS_TABLE).alter.set_table_properties({table_schema.PROPERTY: "2"}, raise_if_not_exists=False)
    loads.record_synced(site.hot, {older.name: Synced(table.version(), offset)})
    site.hot.execute("CREATE TABLE recounts (id INTEGER PRIMARY KEY AUTOINCREMENT, date TEXT NOT NULL UNIQUE)")
    site.hot.execute("INSERT INTO recounts (date) VALUES ('2026-09-15')")
    site.hot.execute("ALTER TABLE batches DROP COLUMN kind")
    site.hot.execute("PRAGMA user_version=9")


def test_interrupted_upgrade_of_a_table_is_completed(older: Site) -> None:
    table_schema.add_columns(TITLE)(older.table(HITS_TABLE))  # where a process was killed between the two commits
    delta_table.create(older.root, TABLE_MIGRATIONS)
    table = delta_table.open_table(older.root, HITS_TABLE, TABLE_MIGRATIONS)
    assert (table.version(), property_of(table)) == (VERSION, f"{WITH_TITLE}")
    older.close()


def test_rows_of_files_with_and_without_a_new_column_are_read_together(older: Site) -> None:
    delta_table.create(older.root, TABLE_MIGRATIONS)
    table = delta_table.open_table(older.root, TITLED, TABLE_MIGRATIONS)
    only_old = query.rows(TITLED, delta_table.list_files(table, TITLED), TABLE_MIGRATIONS)
    rows = table.to_pyarrow_table().slice(0, 4)
    titles = pa.array(["A", "B", "C", "D"])
    added = rows.set_column(rows.schema.names.index("title"), TITLED.schema.field("title"), titles)
    delta_table.append(table, added.select(TITLED.schema.names), batches.node_id(older.hot), 2)
    both = query.rows(TITLED, delta_table.list_files(table, TITLED), TABLE_MIGRATIONS)
    for sql, titled in ((only_old, []), (both, ["A", "B", "C", "D"])):
        read = older.database.sql(f"SELECT {', '.join(TITLED.schema.names)} FROM {sql} AS stored").to_arrow_table()
        assert read.num_rows == 9 + len(titled)
        assert sorted(filter(None, read["title"].to_pylist())) == titled
        assert read.cast(TITLED.schema).schema == TITLED.schema
    older.close()


def test_newer_table_is_refused_and_not_changed(older: Site) -> None:
    delta_table.create(older.root, TABLE_MIGRATIONS)
    for refuse in (delta_table.create, delta_table.refuse_newer, lambda root: delta_table.open_table(root, HITS_TABLE)):
        with pytest.raises(StoreTooNew, match=r"^the table hits of the lake has schema version 6, .* up to 5: install"):
            refuse(older.root)
    assert delta_table.open_table(older.root, HITS_TABLE, TABLE_MIGRATIONS).version() == VERSION
    older.close()


def test_new_table_is_created_at_the_newest_version(tmp_path: Path) -> None:
    delta_table.create(LocalPath(tmp_path), TABLE_MIGRATIONS)
    table = delta_table.open_table(LocalPath(tmp_path), HITS_TABLE, TABLE_MIGRATIONS)
    assert (table.version(), property_of(table)) == (0, "6")


@pytest.mark.parametrize(
    "known", [control_migrations.MIGRATIONS, schema_migrations.MIGRATIONS, *table_schema.MIGRATIONS.values()]
)
def test_released_migrations_are_numbered_without_a_gap(known: tuple[Migration[object], ...]) -> None:
    assert migrations.newest(known) == 1 + len(known)
