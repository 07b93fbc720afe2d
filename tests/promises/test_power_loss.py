"""A power loss after any deletion loses nothing, because the replacements of deleted files are synced before.

`tests.promises.power_loss` has the model of a power loss. Each case runs the real code in a traced process.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.promises.power_loss import STEP, Event, PowerLoss
from tests.warehouse.site import Row, Site, key, some_rows, view
from warehouse.integrity import durability
from warehouse.maintenance import compact
from warehouse.rollups import catalog
from warehouse.tables import TABLES

BEGIN = """
import asyncio, os, sys
from datetime import UTC, datetime
from warehouse.lake.roots import LocalPath
from api import data_folder, settings
from api.background import open_scheduler
from ingest.hotlog.writer import HotLog
from ingest.hotlog.deduplication import Post
from warehouse.hotlog import batches
from warehouse.maintenance import compact, erase
from warehouse.maintenance.scheduler import VACUUM
from warehouse.query import engine
from warehouse.maintenance.load import load
from warehouse.schema import HOT

def step(name):
    os.access("STEP:" + name, os.F_OK)

folder = LocalPath(sys.argv[1])
root = folder / "lake"
chosen = settings.read({}, folder)
"""
POST = """
known = dict(project_id="site", ts=0, path="/", traffic="human", rule="human", ruleset="1", user_agent="",
             source="beacon", received_at=0)

async def post():
    hotlog = HotLog(folder / "hot.sqlite", 1_000)
    await hotlog.post(Post("site", [tuple(known.get(name) for name in HOT.names)], []))
    step("acknowledged")
    hotlog.close()

data_folder.prepare_lake(chosen)
asyncio.run(post())
"""
OPEN = """
hot, database = batches.connect(folder / 'hot.sqlite'), engine.connect(folder / 'spill')
share = engine.Share(folder / 'spill')
"""
LOAD = """
load(hot, root, 60, step)
"""
STAGE = """
from tests.warehouse.site import Site, some_rows

site = Site(folder, is_new=False)
site.stage(some_rows(25, 30))
step("named by a batch")
load(site.hot, root, 60, step)
"""
ROLLUP = """
from warehouse.lake import delta_table
from warehouse.tables import HITS_TABLE
from tests.warehouse.rollups.writing import write_rollup

files = delta_table.list_files(delta_table.open_table(root, HITS_TABLE), HITS_TABLE)
write_rollup(root, database, "2026-09", files, step)
"""
UPKEEP = """
step("compaction")
compact.compact(hot, root, share, 60)
step("project deletion")
erase.erase_hits(hot, root, share, erase.Chosen('other'), 60)
step("an hour's upkeep")
data_folder.prepare_lake(chosen)
maintenance = open_scheduler(chosen)
maintenance.run(VACUUM, datetime.now(UTC))
maintenance.close()
step("end")
"""
STORED = some_rows(0, 25)
OTHERS = [view(project_id="other", event_id=f"other-{number}") for number in range(2)]


def fill(site: Site) -> None:
    """Write two files per partition, removed files and a checkpoint past the grace, and hot rows."""
    site.post(*STORED[:5])
    site.load()
    site.post(*STORED[5:10], *OTHERS)
    site.load()
    compact.vacuum(site.hot, site.root, 0)
    site.compact()
    site.age()
    for first in (10, 15):
        site.post(*STORED[first : first + 5])
        site.load()
    site.post(*STORED[20:])


@pytest.fixture
def site(tmp_path: Path) -> Iterable[Site]:
    """Yield a filled site, whose hot log is closed."""
    with closing(Site.after(fill, tmp_path / "data")) as site:
        site.hot.close()
        yield site


def after_power_loss(power: PowerLoss, copy: Path, *, empty: bool) -> Site:
    """Return the data folder after a power loss, prepared and loaded as at a start of the service."""
    power.lose(copy, empty=empty)
    site = Site(copy, is_new=False)
    durability.prepare(site.hot, site.root)
    site.load()
    return site


def assert_has_once(site: Site, rows: Sequence[Row]) -> None:
    assert site.event_ids() == sorted(row["event_id"] for row in rows)
    assert site.daily_views() == Counter(map(key, rows))
    assert site.faults() == []
    site.close()


def test_power_loss_right_after_load_and_upkeep_loses_nothing(site: Site, tmp_path: Path) -> None:
    power = PowerLoss(site.root.parent)
    power.run(BEGIN + OPEN + LOAD + UPKEEP)
    for empty in (False, True):  # unsynced files are missing, or empty
        assert_has_once(after_power_loss(power, tmp_path / f"copy, {empty}", empty=empty), STORED)


@pytest.mark.long
@pytest.mark.parametrize("syncs", [1, 6, 10], ids=["first file", "some files", "commit"])
def test_power_loss_after_a_loader_was_killed_before_its_syncs_loses_nothing(
    site: Site, tmp_path: Path, syncs: int
) -> None:
    power = PowerLoss(site.root.parent)
    killed = power.run(BEGIN + OPEN + LOAD, kill_at_fsync=syncs)
    assert "before commit of hits" in steps(killed)
    assert "before mark" not in steps(killed)
    assert_has_once(after_power_loss(power, tmp_path / "at once", empty=True), [*STORED, *OTHERS])
    assert "after mark" in steps(power.run(BEGIN + OPEN + LOAD))
    for empty in (False, True):
        copy = tmp_path / f"after the next load, {empty}"
        assert_has_once(after_power_loss(power, copy, empty=empty), [*STORED, *OTHERS])


@pytest.mark.long
def test_staged_files_are_on_the_disk_before_a_batch_names_them_and_their_commits_before_the_mark(
    site: Site, tmp_path: Path
) -> None:
    power, checked = PowerLoss(site.root.parent), Counter[str]()
    for event in power.trace(BEGIN + STAGE):
        if event.call == STEP and event.paths[0] in {"named by a batch", "before mark"}:
            assert unsafe_files(power) == []
            checked[event.paths[0]] += 1
        power.follow(event)
    assert checked == {"named by a batch": 1, "before mark": 2}
    rows = [*STORED, *OTHERS, *some_rows(25, 30)]
    assert_has_once(after_power_loss(power, tmp_path / "copy", empty=True), rows)


@pytest.mark.long
def test_files_of_a_rollup_are_on_the_disk_before_readers_use_it(site: Site) -> None:
    power, checked = PowerLoss(site.root.parent), []
    for event in power.trace(BEGIN + OPEN + ROLLUP):
        power.follow(event)
        if event == Event(STEP, ("before coverage",)):
            files = [path for path in power.present() if "rollups" in path.parts and path.suffix == ".parquet"]
            checked.append(len(files))
            assert [path.name for path in files if not power.is_safe(path)] == []
    assert checked == [len(catalog.PARQUET)]


def test_post_is_on_the_disk_with_all_its_folders_when_it_is_acknowledged(tmp_path: Path) -> None:
    power = PowerLoss(tmp_path / "new" / "data")
    seen = False
    for event in power.trace(BEGIN + POST):
        if event == Event(STEP, ("acknowledged",)):
            seen = True
            assert power.is_safe(power.folder / "hot.sqlite-wal")
            assert power.is_named(power.folder / "hot.sqlite")
            assert all(power.is_safe(file) for spec in TABLES for file in log_files(power, spec.name))
            assert power.is_safe(power.folder / "lake" / "agents.parquet")
        power.follow(event)
    assert seen


@pytest.mark.long
def test_every_delete_of_a_load_a_compaction_and_an_upkeep_comes_after_the_syncs_it_needs(site: Site) -> None:
    power, deleted, step = PowerLoss(site.root.parent), Counter[str](), ""
    for event in power.trace(BEGIN + OPEN + LOAD + UPKEEP):
        if event.call == STEP:
            step = event.paths[0]
            if step == "before mark":  # of hot batches
                assert unsafe_files(power) == []
                deleted[step] += 1
        elif event.call.startswith("unlink") and (kind := kind_of(event.paths[-1])):
            assert unsafe_files(power) == [], event
            deleted[f"{kind} in {step}"] += 1
        power.follow(event)
    assert step == "end"
    assert set(deleted) == {"before mark", "commit in an hour's upkeep", "rows in an hour's upkeep"}
    assert deleted["commit in an hour's upkeep"] >= 4


def steps(events: Sequence[Event]) -> list[str]:
    return [event.paths[0] for event in events if event.call == STEP]


def log_files(power: PowerLoss, table: str) -> list[Path]:
    """Return the log files of a table at this point of the trace."""
    return [
        path for path in power.present() if path.parent.parts[-2:] == (table, "_delta_log") and "#" not in path.name
    ]


def unsafe_files(power: PowerLoss) -> list[Path]:
    """Return the files of both tables that a power loss would remove, except the commits of a vacuum."""
    tables = [power.folder / "lake" / spec.name for spec in TABLES]
    present = [path for path in power.present() if any(path.is_relative_to(table) for table in tables)]
    return [path for path in present if not power.is_safe(path) and "#" not in path.name and not is_vacuum(path)]


def is_vacuum(path: Path) -> bool:
    if not re.fullmatch(r"\d{20}\.json", path.name) or not path.exists():
        return False
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    return [action["commitInfo"]["operation"] for action in actions] in (["VACUUM START"], ["VACUUM END"])


def kind_of(path: str) -> str | None:
    """Return the kind of an unlinked file of the lake, or None for a temporary file of delta-rs."""
    if match := re.search(r"/lake/(?:hits|requests)/(_delta_log/)?[^/]+(?:/[^/#]+)?$", path):
        return None if "#" in path else "commit" if match[1] else "rows"
    return None
