"""Rows that do not fit into the memory together are sorted in parts."""

from collections import Counter
from collections.abc import Sequence
from typing import cast

import duckdb
import pyarrow.parquet as pq
import pytest

from tests.warehouse.site import Site, some_rows, view
from warehouse.lake import delta_table
from warehouse.maintenance import sorting
from warehouse.tables import HITS_TABLE, REQUESTS_TABLE


class LittleMemory:
    """A database whose first query finds too little memory, as the sort of very long rows does."""

    def __init__(self, database: duckdb.DuckDBPyConnection) -> None:
        self.database, self.queries = database, 0

    def sql(self, query: str, **values: object) -> duckdb.DuckDBPyRelation:
        self.queries += 1
        if self.queries == 1:
            raise duckdb.OutOfMemoryException("Out of Memory Error: failed to allocate data")
        return self.database.sql(query, **values)


@pytest.mark.long
def test_rows_that_do_not_fit_into_the_memory_together_are_sorted_in_parts(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = HITS_TABLE
    monkeypatch.setattr(sorting, "PART_BYTES", 100)
    for _ in range(3):
        site.post(*(view(**{**row, "project_id": "ab"[number % 2]}) for number, row in enumerate(some_rows(0, 20))))
        site.load()
    files = delta_table.list_files(site.table(spec), spec)
    partition = max(file.partition for file in files)
    chosen = [file for file in files if file.partition == partition]
    expected = sorting.write_sorted(site.root, site.database, spec, partition, chosen)
    database = LittleMemory(site.database)
    actual = sorting.write_sorted(site.root, cast("duckdb.DuckDBPyConnection", database), spec, partition, chosen)
    assert database.queries > 5

    def rows(files: Sequence[delta_table.File]) -> list[dict[str, object]]:
        return [row for file in files for row in pq.ParquetFile(file.path).read().to_pylist()]

    assert Counter(map(repr, rows(actual))) == Counter(map(repr, rows(expected)))
    keys = [tuple(row[name] for name in spec.order) for row in rows(actual)]
    assert keys == sorted(keys)


def test_error_for_lack_of_memory_is_raised_if_the_rows_of_a_table_cannot_be_sorted_in_parts(site: Site) -> None:
    spec = REQUESTS_TABLE  # of whose order only the project is never null
    site.post(*(view(traffic="bot", status=404, path=f"/{number}") for number in range(9)))
    site.load()
    files = delta_table.list_files(site.table(spec), spec)
    database = cast("duckdb.DuckDBPyConnection", LittleMemory(site.database))
    with pytest.raises(duckdb.OutOfMemoryException):
        sorting.write_sorted(site.root, database, spec, "2026-09", files)
