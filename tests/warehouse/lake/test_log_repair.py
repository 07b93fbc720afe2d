"""A table opens without a broken checkpoint; the error for a table that cannot be opened names the file."""

import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.warehouse.site import Site, some_rows
from warehouse.errors import DataIncomplete
from warehouse.lake import log_repair
from warehouse.tables import HITS_TABLE, TABLES

NEWEST = 4
CHECKPOINT = f"{2:020}.checkpoint.parquet"
HINT = "_last_checkpoint"


def prepare(site: Site) -> None:
    """Load four times one row, with a checkpoint after the second load."""
    for number, row in enumerate(some_rows(0, NEWEST), start=1):
        site.post(row)
        site.load()
        if number == 2:
            for spec in TABLES:
                site.table(spec).create_checkpoint()


def log_folder(site: Site) -> Path:
    return site.root / "hits" / "_delta_log"


def commit(site: Site, version: int) -> Path:
    return log_folder(site) / f"{version:020}.json"


def truncate(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


@pytest.mark.long
@pytest.mark.parametrize(
    ("damage", "names"),
    [
        (lambda log: (log / CHECKPOINT).write_bytes(b""), [CHECKPOINT, HINT]),
        (lambda log: (log / CHECKPOINT).write_bytes(b"\0" * 5_000), [CHECKPOINT, HINT]),
        (lambda log: truncate(log / CHECKPOINT), [CHECKPOINT, HINT]),
        (lambda log: (log / CHECKPOINT).unlink(), [HINT]),
        (lambda log: (log / HINT).write_text('{"version":30,"size":3}'), [HINT]),
    ],
    ids=["empty", "zeros", "truncated", "missing", "another version"],
)
def test_table_opens_without_a_broken_checkpoint_which_is_set_aside_with_a_warning(
    site: Site, caplog: pytest.LogCaptureFixture, damage: Callable[[Path], object], names: list[str]
) -> None:
    damage(log_folder(site))
    with caplog.at_level(logging.WARNING, "readership.lake"):
        assert site.event_ids() == [row["event_id"] for row in some_rows(0, NEWEST)]
    warnings = [record.getMessage() for record in caplog.records]
    assert [f"{log_folder(site) / name} is broken" in warning for name, warning in zip(names, warnings, strict=True)]
    assert sorted(path.name for path in log_folder(site).glob("*.broken")) == sorted(f"{name}.broken" for name in names)
    site.post(some_rows(NEWEST, 1)[0])
    site.load()
    assert site.faults() == []


@pytest.mark.parametrize("content", [b"", b"\0" * 60, b'{"version":'])
def test_table_opens_with_a_broken_hint(site: Site, content: bytes) -> None:
    (log_folder(site) / HINT).write_bytes(content)
    assert site.event_ids() == [row["event_id"] for row in some_rows(0, NEWEST)]


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (lambda file: file.unlink(), "is missing"),
        (lambda file: file.write_text("junk"), "is not JSON"),
        (lambda file: file.write_text("[1]"), "is not JSON"),
        (lambda file: file.write_bytes(b"\0" * 60), "is not JSON"),
    ],
    ids=["missing", "junk", "not an object", "zeros"],
)
def test_error_for_a_damaged_commit_names_the_table_and_the_file(
    site: Site, damage: Callable[[Path], object], fault: str
) -> None:
    damage(commit(site, 3))
    with pytest.raises(DataIncomplete, match=f"the table {site.root}/hits is incomplete: {commit(site, 3)} {fault}"):
        site.table(HITS_TABLE)


def test_broken_checkpoint_is_not_set_aside_if_its_commits_are_missing(site: Site) -> None:
    commit(site, 1).unlink()
    (log_folder(site) / CHECKPOINT).write_bytes(b"junk")
    with pytest.raises(
        DataIncomplete, match=f"{log_folder(site) / CHECKPOINT} cannot be read, and {commit(site, 1)} is "
    ):
        site.table(HITS_TABLE)
    assert (log_folder(site) / CHECKPOINT).read_bytes() == b"junk"


def test_damaged_commit_after_the_checkpoint_is_set_aside_with_the_later_ones(site: Site) -> None:
    truncate(commit(site, 3))
    log_repair.set_aside_broken(site.root / "hits")
    assert site.table(HITS_TABLE).version() == 4, "they are replaced by commits without changes"
    assert sorted(path.name for path in log_folder(site).glob("*.json.broken")) == [
        f"{version:020}.json.broken" for version in (3, 4)
    ]


def test_error_for_a_missing_log_names_its_folder(site: Site) -> None:
    for file in log_folder(site).iterdir():
        file.unlink()
    with pytest.raises(DataIncomplete, match=f"{log_folder(site)} is missing or has no commit"):
        site.table(HITS_TABLE)
