"""The files of a table are those of one snapshot, with the number of rows that the files lack."""

import duckdb

from tests.warehouse.site import DAY, NOON, Site, view
from warehouse.lake import delta_table
from warehouse.query import engine, table_files
from warehouse.query.table_files import TableFiles


def count(listed: TableFiles, number: str) -> int:
    """Return a number that plain DuckDB computes over the files."""
    [(value,)] = duckdb.sql(f"SELECT {number} FROM {engine.parquet(listed.files)}").fetchall()
    return int(value)


def test_files_have_the_loaded_rows_and_waiting_is_the_number_of_hot_ones(site: Site) -> None:
    site.post(view(), view(), view(ts=NOON + DAY))
    site.load()
    site.post(view(), view())
    hits = table_files.read(site.hot_log, site.root, "hits")
    assert (count(hits, "count(*)"), hits.waiting) == (3, 2)


def test_replaced_files_are_not_listed(site: Site) -> None:
    for _ in range(3):
        site.post(view())
        site.load()
    site.compact()
    [file] = table_files.read(site.hot_log, site.root, "hits").files
    assert len(list((site.root / "hits").glob("*/*.parquet"))) == 4
    assert file.rows == 3


def test_staged_files_are_listed_before_they_are_loaded(site: Site) -> None:
    site.stage([view(), view()])
    hits = table_files.read(site.hot_log, site.root, "hits")
    assert (count(hits, "count(*)"), hits.waiting) == (2, 0)


def test_waiting_errors_are_counted_for_daily_errors_only(site: Site) -> None:
    site.post(view(), view(traffic="bot", status=404))
    waiting = {spec.name: table_files.read(site.hot_log, site.root, spec.name).waiting for spec in delta_table.TABLES}
    assert waiting == {"hits": 1, "daily_errors": 1}


def test_empty_lake_has_no_files(site: Site) -> None:
    assert table_files.read(site.hot_log, site.root, "hits") == TableFiles((), 0)
