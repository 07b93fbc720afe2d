"""A copied lake gives the answers of its source, and an interrupted copy is never a table with fewer rows."""

import shutil
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from tests.warehouse.site import DAY, NOON, Site, rank, some_rows
from warehouse.errors import MoveRefused
from warehouse.hotlog import batches
from warehouse.lake import delta_log, delta_table, roots
from warehouse.lake.remote.object_path import ObjectPath, Stat
from warehouse.lake.roots import LocalPath, Root
from warehouse.maintenance import compact, rollups
from warehouse.move import lake
from warehouse.rollups import catalog
from warehouse.tables import TABLES


def load_twice(site: Site) -> None:
    for first in (0, 30):
        site.post(*some_rows(first, 30))
        site.load()


def fill(site: Site) -> None:
    """Write a rollup, and tables that have checkpoints, older commits and newer ones."""
    load_twice(site)
    site.compact()
    site.age()
    compact.vacuum(site.hot, site.root, 0)
    rollups.write_due(site.hot, site.root, site.share, date(2026, 11, 1), 0, settle_s=0)
    site.stage(some_rows(60, 30))
    site.load()
    site.post(*some_rows(90, 30))
    site.load()
    site.post(*some_rows(120, 3))
    logs = [delta_log.read(site.root / spec.name) for spec in TABLES]
    assert all(0 < log.checkpoint < log.newest and 0 not in log.commits for log in logs)


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Site]:
    with closing(Site.after(fill, tmp_path / "source")) as site:
        yield site


@pytest.fixture
def target(bucket: str, tmp_path: Path) -> ObjectPath:
    root = roots.open_remote(f"{bucket}/lake", tmp_path / "target" / "lake")
    assert isinstance(root, ObjectPath)
    return root


def copy(source: Site, target: ObjectPath, on_point: lake.OnPoint = lambda point: None) -> dict[str, int]:
    return lake.copy(source.root, target, batches.node_id(source.hot), on_point=on_point)


def answers(site: Site) -> list[object]:
    with closing(site.reports()) as reports:
        ranking = rank(reports, "site", NOON - DAY, NOON + 5 * DAY, NOON + 5 * DAY)
    return [ranking.paths.to_pylist(), site.faults(), site.event_ids()]


def moved(source: Site, target: ObjectPath) -> Site:
    """Return the site with a copy of the hot log and the new lake."""
    folder = target.lake.local.parent
    folder.mkdir(exist_ok=True)
    source.close()
    shutil.copy(source.hot_log, folder)
    return Site(folder, is_new=False, root=target)


def readable(root: Root) -> dict[str, Any]:
    """Return the version and the files of each table that another program can open."""
    tables = {}
    for spec in TABLES:
        with suppress(DeltaError):
            table = DeltaTable(str(root / spec.name), storage_options=root.delta_options)
            tables[spec.name] = table.version(), tuple(sorted(pa.table(table.get_add_actions())["path"].to_pylist()))
    return tables


@pytest.mark.long
def test_copy_gives_the_same_answers_and_has_the_same_files(source: Site, target: ObjectPath) -> None:
    (source.root.local / ".lock").touch()
    sizes: list[int] = []
    done = lake.copy(source.root, target, batches.node_id(source.hot), sizes.append)
    assert (len(done), sum(done.values())) == (len(dict(target.files())) - 1, sum(sizes))
    lake.finish(target)
    expected = answers(source)
    assert len(expected[2]) == 120  # type: ignore[arg-type]
    local = {
        key.relative_to(source.root).as_posix()
        for key in source.root.rglob("*")
        if key.is_file() and not key.name.startswith(".")
    }
    assert dict(target.files()).keys() == local
    with closing(moved(source, target)) as site:
        assert answers(site) == expected
        assert len(list(catalog.list_rollups(target, "2026-09"))) == 1
        site.load()
        assert len(site.event_ids()) == 123


@pytest.fixture
def young(tmp_path: Path) -> Iterator[Site]:
    """Yield a site whose tables have all commits and no checkpoint."""
    with closing(Site.after(load_twice, tmp_path / "young")) as site:
        yield site


@pytest.mark.long
@pytest.mark.parametrize("name", [pytest.param("source", marks=pytest.mark.night), "young"])
def test_no_table_can_be_read_before_it_is_complete(
    name: str, target: ObjectPath, request: pytest.FixtureRequest
) -> None:
    site = request.getfixturevalue(name)
    complete = readable(site.root)
    steps, counts = set(), []

    def look(step: str) -> None:
        steps.add(step)
        if step != "after file":
            tables = readable(target)
            assert tables.items() <= complete.items()
            counts.append(len(tables))

    copy(site, target, look)
    assert steps == set(lake.POINTS)
    assert counts == sorted(counts)
    assert counts[-1] == len(complete) == len(TABLES)


@pytest.mark.long
def test_interrupted_copy_continues_after_the_source_has_changed(source: Site, target: ObjectPath) -> None:
    steps: list[str] = []

    def stop(step: str) -> None:
        steps.append(step)
        if steps.count("after log file") == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy(source, target, stop)
    assert dict(target.files())[lake.MARK].st_size > 0
    source.load()
    source.compact()
    source.age()
    compact.vacuum(source.hot, source.root, 0)
    complete = readable(source.root)
    tables_before_files = []
    copy(source, target, lambda step: tables_before_files.append(readable(target)) if step == "before files" else None)
    assert (tables_before_files, readable(target)) == ([{}], complete)
    expected = answers(source)
    with closing(moved(source, target)) as site:
        assert answers(site) == expected


@pytest.mark.long
def test_place_that_is_not_an_interrupted_copy_of_the_source_is_refused(source: Site, target: ObjectPath) -> None:
    copy(source, target)
    with pytest.raises(MoveRefused, match="interrupted move of another data folder"):
        lake.copy(LocalPath(str(source.root)), target, "other")
    delta_table.append(delta_table.open_table(target, TABLES[0]), TABLES[0].schema.empty_table(), "n", 1)
    with pytest.raises(MoveRefused, match="is newer than the table"):
        copy(source, target)
    lake.finish(target)
    before = dict(target.files())
    with pytest.raises(MoveRefused, match="is not empty"):
        copy(source, target)
    assert dict(target.files()) == before


class ListedBefore(ObjectPath):
    """An empty place, as a move listed it before another move wrote its mark."""

    def files(self) -> Iterator[tuple[str, Stat]]:
        return iter(())


@pytest.mark.long
def test_second_of_two_moves_that_begin_at_once_is_refused(source: Site, target: ObjectPath) -> None:
    copy(source, target)
    before = dict(target.files())
    with pytest.raises(MoveRefused, match="another move to s3://.* has just begun"):
        lake.copy(LocalPath(str(source.root)), ListedBefore(target.lake, target.key), "other")
    assert dict(target.files()) == before
