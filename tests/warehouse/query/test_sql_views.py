"""The SQL views have the rows of the files and the hot rows, and count dirty days from the hits."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tests.warehouse.site import DAY, NOON, Row, Site, key, view
from warehouse.hotlog import dirty_days
from warehouse.lake import delta_table
from warehouse.query import engine, sql_views
from warehouse.query.snapshot import Snapshot, SnapshotReader
from warehouse.schema import AGENTS

AGENT = {"name": "GPTBot", "operator": "OpenAI", "purpose": "training", "pattern": "GPTBot"}
LOADED = [view(), view(), view("/b", ts=NOON - 20 * DAY, traffic="ai", agent="GPTBot")]
HOT_ROWS = [view(), view("/c", ts=NOON + DAY)]


@pytest.fixture
def site(tmp_path: Path) -> Iterable[Site]:
    site = Site(tmp_path / "data")
    site.post(*LOADED)
    site.load()
    site.post(*HOT_ROWS)
    yield site
    site.close()


def take(site: Site) -> Snapshot:
    reader = SnapshotReader(site.hot_log, site.root)
    snapshot = reader.take()
    reader.close()
    return snapshot


def counts(connection: duckdb.DuckDBPyConnection, view_name: str, number: str) -> Counter[tuple[Any, ...]]:
    """Return a number of each key, added up over the rows of a view."""
    sql = f"SELECT project_id, date, path, traffic, agent, {number}::BIGINT FROM {view_name} GROUP BY ALL"
    return Counter({tuple(row[:-1]): row[-1] for row in connection.sql(sql).fetchall()})


def assert_views_have(connection: duckdb.DuckDBPyConnection, rows: list[Row]) -> None:
    assert counts(connection, "hits", "count(*)") == Counter(map(key, rows))
    assert counts(connection, "daily_views", "sum(views)") == Counter(map(key, rows))


def test_temporary_views_belong_to_one_cursor(site: Site) -> None:
    with site.database.cursor() as cursor, site.database.cursor() as other:
        sql_views.create_temporary(cursor, take(site))
        assert_views_have(cursor, LOADED + HOT_ROWS)
        with pytest.raises(duckdb.CatalogException):
            other.sql("FROM hits")


def test_views_of_a_database_are_seen_by_all_cursors_and_have_comments(site: Site, tmp_path: Path) -> None:
    database = engine.connect(tmp_path / "spill")
    sql_views.create(database, take(site), pa.Table.from_pylist([AGENT], AGENTS))
    with database.cursor() as cursor:
        assert_views_have(cursor, LOADED + HOT_ROWS)
        assert cursor.sql("FROM agents").fetchall() == [tuple(AGENT.values())]
        comments = cursor.sql("SELECT comment FROM duckdb_columns() WHERE table_name = 'daily_views'").fetchall()
        assert len(comments) == 7
        assert all(comment for (comment,) in comments)
    database.close()


def test_dirty_day_is_counted_from_the_hits_and_other_days_are_not(site: Site) -> None:
    site.table(delta_table.DAILY_VIEWS_TABLE).delete("month = '2026-09'")
    site.table(delta_table.DAILY_VIEWS_TABLE).delete("month = '2026-08'")
    dirty_days.mark_dirty(site.hot, ["2026-09-15"])
    with site.database.cursor() as cursor:
        sql_views.create_temporary(cursor, take(site))
        views = counts(cursor, "daily_views", "sum(views)")
    assert views == {key(view()): 3, key(HOT_ROWS[1]): 1}  # the day in August is not dirty: its count was deleted
