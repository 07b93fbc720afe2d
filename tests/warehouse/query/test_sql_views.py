"""The SQL views have the rows of the files and the hot rows, and `daily_views` counts them as a Counter does."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.warehouse.site import DAY, NOON, Row, Site, key, view
from warehouse.query import engine, sql_views
from warehouse.query.snapshot import SnapshotReader
from warehouse.schema import AGENTS, DAILY_VIEWS, HOT

AGENT = {"name": "GPTBot", "operator": "OpenAI", "purpose": "training", "pattern": "GPTBot"}
LOADED = [view(), view(), view("/b", ts=NOON - 20 * DAY, traffic="ai", agent="GPTBot")]
HOT_ROWS = [view(), view("/c", ts=NOON + DAY)]


def prepare(site: Site) -> None:
    site.post(*LOADED)
    site.load()
    site.post(*HOT_ROWS)


def take(site: Site) -> sql_views.Snapshots:
    reader = SnapshotReader(site.hot_log, site.root, columns=HOT.names)
    snapshots = reader.take_all()
    reader.close()
    return snapshots


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


LAST_MICROSECOND = datetime(2026, 8, 31, 23, 59, 59, 999_999, tzinfo=UTC)
rows_of_any_key = st.builds(
    view,
    path=st.sampled_from(["/", "/a", "/a%2Fb", "/a'b"]),
    ts=st.sampled_from([NOON, NOON + DAY, LAST_MICROSECOND, datetime(1, 1, 1, tzinfo=UTC)]),
    project_id=st.sampled_from(["site", "other"]),
    traffic=st.sampled_from(["human", "ai", "bot"]),
    agent=st.none() | st.sampled_from(["GPTBot", ""]),
)


@pytest.mark.long
@settings(max_examples=30)
@given(rows=st.lists(rows_of_any_key))
def test_each_key_of_daily_views_has_one_row_with_the_number_of_its_hits(rows: list[Row]) -> None:
    hits = pa.Table.from_pylist(rows, HOT)
    with duckdb.connect() as connection:
        connection.register("dated", hits.append_column("date", hits["ts"].cast(pa.date32())))
        counted = connection.sql(sql_views.DAILY_VIEWS_SQL.format(hits="dated")).to_arrow_table().cast(DAILY_VIEWS)
    counts = counted.to_pylist()
    assert all(row["month"] == row["date"].isoformat()[:7] for row in counts)
    views = [((r["project_id"], r["date"], r["path"], r["traffic"], r["agent"]), r["views"]) for r in counts]
    assert Counter(dict(views)) == Counter(map(key, rows))
    assert len(views) == len(dict(views))
