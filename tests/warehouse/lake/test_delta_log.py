"""The log of a table shows which commits exist, and gets a synced checkpoint after fifty commits."""

import json
from pathlib import Path

import pytest

from tests.warehouse.site import Site, some_rows
from warehouse.lake import delta_log, delta_table
from warehouse.lake.delta_log import HINT, Log
from warehouse.lake.roots import LocalPath
from warehouse.tables import HITS_TABLE


def prepare(site: Site) -> None:
    """Load one hit, so that each table has version 1."""
    site.post(*some_rows(0, 1))
    site.load()


@pytest.mark.parametrize(
    ("commits", "checkpoints", "through", "fault"),
    [
        ({0: 9, 1: 9, 2: 9}, {}, 2, None),
        ({0: 9, 1: 9}, {}, 2, f"{2:020}.json is missing"),
        ({0: 9, 1: 0, 2: 0}, {}, 2, f"{1:020}.json is empty"),
        ({2: 9}, {1: 9}, 2, None),
        ({2: 9}, {1: 0}, 2, f"{0:020}.json is missing"),
        ({0: 9, 1: 9, 3: 9}, {}, 1, None),
    ],
    ids=["complete", "missing", "first of two empty", "after a checkpoint", "empty checkpoint", "later gap"],
)
def test_fault_is_the_first_missing_or_empty_commit_after_the_checkpoint(
    commits: dict[int, int], checkpoints: dict[int, int], through: int, fault: str | None
) -> None:
    actual = Log(LocalPath(Path("hits")), commits, checkpoints).fault(through)
    assert actual == (None if fault is None else f"hits/_delta_log/{fault}")


def test_read_returns_versions_and_sizes_and_ignores_other_files(site: Site) -> None:
    table = site.root / "hits"
    site.table(HITS_TABLE).create_checkpoint()
    (table / "_delta_log" / f"{1:020}.json.broken").write_bytes(b"junk")
    log = delta_log.read(table)
    assert log.commits == {version: delta_log.commit_file(table, version).stat().st_size for version in (0, 1)}
    assert log.checkpoints == {1: delta_log.checkpoint_file(table, 1).stat().st_size}
    assert (log.newest, log.checkpoint) == (1, 1)


def test_log_of_a_missing_table_is_empty(tmp_path: Path) -> None:
    log = delta_log.read(LocalPath(tmp_path / "hits"))
    assert (log.newest, log.checkpoint, log.commits) == (-1, -1, {})


@pytest.mark.long
def test_checkpoint_is_written_and_synced_after_fifty_commits(site: Site, synced: set[Path]) -> None:
    log = site.root / "hits" / "_delta_log"
    delta_log.checkpoint(site.table(HITS_TABLE))
    table = site.table(HITS_TABLE)
    rows = table.to_pyarrow_table()
    while table.version() < 1 + LocalPath.checkpoint_commits:
        assert delta_log.read(log.parent).checkpoint == 1
        delta_table.append(table, rows, "node", table.version())
    newest = log / f"{table.version():020}.checkpoint.parquet"
    assert {newest, log / HINT, log} <= synced
    assert json.loads((log / HINT).read_text())["version"] == table.version()
