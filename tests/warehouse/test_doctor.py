"""The doctor reports each invariant that a test breaks, and checks the others."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.stores.small_disk import SmallDisk
from tests.warehouse.site import DAY, NOON, ROOT, Row, Site, asked, event, hits_of, loads, some_rows, view
from warehouse import doctor
from warehouse.errors import LakeBusy
from warehouse.hotlog import batches, retention
from warehouse.lake import delta_table
from warehouse.lake.lock import write_lock
from warehouse.maintenance import rollups
from warehouse.rollups import catalog
from warehouse.schema import HOT
from warehouse.tables import ASSET_LOADS_TABLE, EVENTS_TABLE, HITS_TABLE, REQUESTS_TABLE, TABLES, Spec

FILES = "every file of the tables exists, with its size"
HOT_FILE = "the hot log is a whole SQLite file"
CHECKSUM = "every waiting batch has its checksum"
HOT_BATCH = "every waiting batch can be read and has its rows"
AHEAD = "every batch in the tables was in the hot log"
PARTITION = "every hit is in the partition of its UTC day"
LOADS = "asset_loads has loads of assets"
REQUESTS = "requests has requests on their days, and errors of AI agents and bots"
EVENTS = "events has events on their days"
TWICE = "no event id is counted twice within seven days"
VISITOR = "every visitor of a day has one agent and device"
LOG = "the logs of the tables can be read"
SPACE = "the disk has space for new hits"
COMPLETE = "the tables have all that was stored in them"
ROLLUP_READ = "every rollup can be read"
ROLLUP = "every rollup equals hits"
REWRITE = "; readership rebuild writes the rollups again"
ALL = {SPACE, LOG, COMPLETE, FILES, HOT_FILE, CHECKSUM, HOT_BATCH, AHEAD, PARTITION, LOADS, REQUESTS, EVENTS, TWICE}
ALL |= {VISITOR, ROLLUP_READ, ROLLUP}


def prepare(site: Site) -> None:
    """Write rows in compacted files, in loaded files, and in the hot log."""
    for first in (0, 10):
        rows = [*some_rows(first, 10), view(traffic="ai", agent="GPTBot", status=404)]
        site.stage(rows, [loads()], [asked()], [event()])
        site.load()
    site.compact()
    site.expire()
    rollups.rebuild(site.hot, site.root, site.share, (NOON + 30 * DAY).date(), 0)
    site.post(*some_rows(20, 5))
    site.load()
    site.post(*some_rows(25, 5))


def findings(site: Site) -> dict[str, str | None]:
    reported = list(doctor.examine(site.hot_log, site.root, site.spill, 0))
    assert len(reported) == len({finding.invariant for finding in reported})
    return {finding.invariant: finding.fault for finding in reported}


def faults(site: Site) -> dict[str, str]:
    return {invariant: fault for invariant, fault in findings(site).items() if fault is not None}


@pytest.mark.long
def test_hot_loaded_and_compacted_rows_have_no_fault(site: Site) -> None:
    assert findings(site) == dict.fromkeys(ALL)


@pytest.mark.long
def test_batches_that_are_loaded_and_deleted_during_the_check_are_no_fault(site: Site) -> None:
    reported = {}
    for finding in doctor.examine(site.hot_log, site.root, site.spill, 0):
        reported[finding.invariant] = finding.fault
        if finding.invariant == COMPLETE:
            site.post(view())
            site.load()
            retention.delete_loaded(site.hot, 0)
    assert reported == dict.fromkeys(ALL)


def test_new_data_folder_has_no_fault(tmp_path: Path) -> None:
    site = Site(tmp_path)
    assert findings(site) == dict.fromkeys(ALL)
    site.close()


@pytest.mark.long
@pytest.mark.parametrize("spec", TABLES, ids=lambda spec: spec.name)
def test_missing_file_is_found(site: Site, spec: Spec) -> None:
    gone = Path(site.state(spec).files[0].path)
    gone.unlink()
    assert faults(site)[FILES] == f"{gone} is missing"


def rollup_of(site: Site) -> catalog.Rollup:
    (part,) = catalog.choose(site.root, site.state(HITS_TABLE).files).parts
    return part.rollup


def test_missing_file_of_a_rollup_is_found(site: Site) -> None:
    gone = rollup_of(site).folder / "paths.parquet"
    gone.unlink()
    assert faults(site) == {ROLLUP_READ: f"{gone} is missing{REWRITE}"}


@pytest.mark.long
def test_changed_number_in_a_rollup_is_found_and_rebuilt(site: Site) -> None:
    folder = rollup_of(site).folder
    cells = pq.read_table(folder / "paths.parquet")
    changed = pa.array([1_000] * len(cells), pa.uint32())
    pq.write_table(cells.set_column(cells.column_names.index("views"), "views", changed), folder / "paths.parquet")
    record = json.loads((folder / catalog.COVERAGE).read_bytes())
    record["sizes"]["paths.parquet"] = (folder / "paths.parquet").stat().st_size
    (folder / catalog.COVERAGE).write_text(json.dumps(record))
    fault = faults(site).pop(ROLLUP)
    assert fault.startswith(f"{folder / 'paths.parquet'} is wrong ")
    assert fault.endswith(REWRITE)
    rollups.rebuild(site.hot, site.root, site.share, (NOON + 30 * DAY).date(), 0)
    assert findings(site) == dict.fromkeys(ALL)


@pytest.mark.long
@pytest.mark.parametrize(
    ("first", "other"),
    [
        ({"browser": "Firefox"}, {"browser": None}),
        ({"traffic": "ai", "agent": "GPTBot"}, {"traffic": "ai", "agent": "ClaudeBot"}),
        ({"traffic": "ai", "verification": "verified"}, {"traffic": "ai", "verification": "failed"}),
    ],
)
def test_visitor_with_two_devices_or_agents_on_a_day_is_a_warning(site: Site, first: Row, other: Row) -> None:
    site.post(*(view(ts=NOON + day * DAY, visitor=1, **reader) for day, reader in ((0, first), (0, other), (1, other))))
    site.load()
    (finding,) = (each for each in doctor.examine(site.hot_log, site.root, site.spill, 0) if each.invariant == VISITOR)
    assert finding.warning == "1 visitor of a day with two agents or devices: reports count one of these"


@pytest.mark.long
def test_rollup_with_bytes_that_are_not_parquet_is_found(site: Site) -> None:
    damaged = rollup_of(site).folder / "devices.parquet"
    damaged.write_bytes(bytes(damaged.stat().st_size))
    assert faults(site)[ROLLUP].startswith(f"{damaged.parent} cannot be checked: ")


@pytest.mark.long
def test_full_disk_is_named_and_everything_else_is_checked(small_disk: SmallDisk) -> None:
    site = Site(small_disk.folder / "data")
    site.post(*some_rows(0, 10))
    site.load()
    site.post(*some_rows(10, 5))
    lost = Path(site.state(HITS_TABLE).files[0].path)
    site.close()  # SQLite needs space to open a hot log that no process has open
    small_disk.fill()
    with pytest.raises(sqlite3.OperationalError, match="disk I/O error"):
        batches.connect(site.hot_log)
    reported = findings(site)
    assert (
        reported.pop(SPACE) == f"disk full: 0 bytes are free in {small_disk.folder / 'data'}, and 8,388,608 are needed"
    )
    assert reported == dict.fromkeys(ALL - {SPACE})
    lost.unlink()
    small_disk.fill()
    assert faults(site)[FILES] == f"{lost} is missing"


def test_missing_log_is_found(site: Site) -> None:
    for entry in (site.root / TABLES[-1].name / "_delta_log").iterdir():
        entry.unlink()
    assert LOG in faults(site)


@pytest.mark.long
def test_truncated_file_is_found(site: Site) -> None:
    file = site.state(HITS_TABLE).files[0]
    os.truncate(file.path, file.size - 1)
    assert faults(site)[FILES] == f"{file.path} has {file.size - 1} bytes, not {file.size}"


@pytest.mark.long
@pytest.mark.parametrize("spec", TABLES, ids=lambda spec: spec.name)
def test_file_of_the_right_size_that_is_not_parquet_is_found(site: Site, spec: Spec) -> None:
    file = site.state(spec).files[0]
    Path(file.path).write_bytes(bytes(file.size))
    reported = faults(site)
    assert FILES not in reported
    of_others = {ASSET_LOADS_TABLE: LOADS, REQUESTS_TABLE: REQUESTS, EVENTS_TABLE: EVENTS}
    assert Path(file.path).name in reported[of_others.get(spec, PARTITION)]


@pytest.mark.long
def test_hit_of_another_day_than_its_partition_is_found(site: Site) -> None:
    rows = hits_of(pa.Table.from_pylist([view("/late", ts=NOON + DAY)], HOT))
    day = pa.array([NOON.date()])
    wrong = rows.set_column(2, rows.schema.field("date"), day)
    delta_table.append(site.table(HITS_TABLE), wrong, batches.node_id(site.hot), 3)
    assert faults(site)[PARTITION] == "1 time, the first: /late"


@pytest.mark.long
def test_event_without_a_name_or_with_other_props_than_json_is_found(site: Site) -> None:
    site.post_events(event(""), event(props="{"), event(props='{"plan": "pro"}'))
    assert faults(site) == {EVENTS: "2 times, the first: site "}


@pytest.mark.long
@pytest.mark.parametrize("where", ["in the hot log", "in two files", "in a file and the hot log"])
def test_event_id_counted_twice_is_found(site: Site, where: str) -> None:
    twice = view(event_id="twice"), view(event_id="twice", received_at=NOON + 6 * DAY)
    for row in twice:
        site.post(row)
        if where == "in two files" or (where == "in a file and the hot log" and row is twice[0]):
            site.load()
    assert faults(site) == {TWICE: "1 time, the first: site twice"}


@pytest.mark.long
def test_event_id_of_two_projects_or_of_two_weeks_or_of_a_server_and_a_beacon_is_no_fault(site: Site) -> None:
    site.post(view(event_id="same", source="server"), view(event_id="same", project_id="other"))
    site.post(view(event_id="same", source="beacon"))
    site.post(view(event_id="same", source="server", received_at=NOON + 8 * DAY))
    assert faults(site) == {}


def test_event_id_accepted_again_in_the_second_when_its_seven_days_end_is_no_fault(site: Site) -> None:
    almost = NOON + 7 * DAY - timedelta(milliseconds=999)  # the hot log stores whole seconds
    site.post(view(event_id="same"), view(event_id="same", received_at=almost))
    assert faults(site) == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("UPDATE batches SET message = x'00'", "batch 4 cannot be read: "),
        ("UPDATE batches SET message = substr(message, 1, length(message) / 2)", "batch 4 cannot be read: "),
        ("UPDATE batches SET message = x''", "batch 4 cannot be read: "),
        ("UPDATE batches SET rows = 6", "batch 4 has 5 rows, not 6"),
    ],
)
def test_corrupt_hot_batch_is_found(site: Site, change: str, message: str) -> None:
    site.hot.execute(change)
    assert faults(site)[HOT_BATCH].startswith(message)


def test_hot_log_that_is_not_an_sqlite_file_is_found(site: Site) -> None:
    site.hot.close()
    site.hot_log.write_bytes(b"This is no database. " * 1_000)
    assert "not a database" in faults(site)[HOT_FILE]


def test_bytes_of_a_hot_batch_that_changed_on_the_disk_are_found(site: Site) -> None:
    site.post(view("/changed"))
    message: bytes = site.hot.execute("SELECT message FROM batches WHERE id = 5").fetchone()[0]
    site.hot.execute(
        "UPDATE batches SET message = ? WHERE id = 5", (message.replace(b"/changed", b"/\xff\xff\xff\xff\xff\xff\xff"),)
    )
    assert faults(site)[HOT_BATCH].startswith("batch 5 cannot be read: ")


def test_hot_log_with_a_page_overwritten_is_found(site: Site) -> None:
    site.post(*some_rows(30, 400))
    site.hot.close()
    with site.hot_log.open("r+b") as file:
        file.seek(-4096 * 3, os.SEEK_END)
        file.write(b"\xff" * 4096)
    reported = faults(site)
    assert HOT_FILE in reported or HOT_BATCH in reported


def test_hot_log_restored_from_an_older_copy_is_found(site: Site, tmp_path: Path) -> None:
    site.hot.close()
    shutil.copy(site.hot_log, tmp_path / "copy")
    site.hot = batches.connect(site.hot_log)
    site.post(view())
    site.load()
    site.hot.close()
    shutil.copy(tmp_path / "copy", site.hot_log)
    site.hot = batches.connect(site.hot_log)
    reported = faults(site)
    assert reported.keys() == {AHEAD}
    assert "is older than the lake, which has its batches up to 5; its own end at 4: restore" in reported[AHEAD]


def test_empty_hot_log_is_found_and_stays_empty(site: Site) -> None:
    site.hot.close()
    site.hot_log.write_bytes(b"")
    assert faults(site) == {HOT_FILE: "the file is empty"}
    assert site.hot_log.read_bytes() == b""


def test_doctor_times_out_on_the_lock(site: Site) -> None:
    with write_lock(site.root, 0), pytest.raises(LakeBusy):
        findings(site)


EXAMINE = """
import sys
from warehouse.lake.roots import LocalPath
from warehouse import doctor

folder = LocalPath(sys.argv[1])
for finding in doctor.examine(folder / "hot.sqlite", folder / "lake", folder / "spill", 0):
    print(finding.fault)
"""


@pytest.mark.long
@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Los_Angeles"])
def test_time_zone_of_the_machine_causes_no_fault(site: Site, zone: str) -> None:
    site.post(view(ts=NOON.replace(day=30, hour=23)), view(ts=NOON.replace(day=1, hour=0)))
    command = [sys.executable, "-c", EXAMINE, site.root.parent]
    ran = subprocess.run(command, cwd=ROOT, env={**os.environ, "TZ": zone}, capture_output=True, text=True, check=True)
    assert ran.stdout == "None\n" * len(ALL)
