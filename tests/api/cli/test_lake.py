"""`flush`, `compact` and `doctor`, and commands over a damaged lake."""

import json
import subprocess
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable

from ingest.verification.address_lists import age_warning, shipped
from tests.api.cli.console import FIREFOX, Imported, call, complaint, result
from tests.processes.running import COMMAND, PROJECT
from tests.processes.waiting import until
from tests.warehouse.site import DAY, NOON, Site, view
from warehouse.tables import HITS_TABLE

DOCTOR = "if it happens again, run readership doctor"
LINE = f'192.0.2.1 - - [15/Sep/2026:12:00:00 +0000] "GET {{}} HTTP/1.1" 200 5 "-" "{FIREFOX}"\n'


@pytest.mark.long
def test_flush_and_compact_print_counts_and_leave_each_hit(data: Path) -> None:
    for number in range(3):
        with closing(Site(data, is_new=False)) as site:
            site.post(view(f"/{number}", project_id=PROJECT))
        assert result(call(data, "flush"))["rows"] == 1
    assert result(call(data, "flush"))["rows"] == 0
    done = result(call(data, "compact"))
    assert (done["partitions"], done["files_before"], done["files_after"]) == (1, 3, 1)
    rows = result(call(data, "sql", "SELECT path FROM hits ORDER BY path", "--format", "json"))
    assert rows == [{"path": "/0"}, {"path": "/1"}, {"path": "/2"}]
    assert all(finding["fault"] is None for finding in result(call(data, "doctor")))


@pytest.mark.long
def test_compact_writes_rollups_and_rebuild_replaces_them(imported: Imported, tmp_path: Path) -> None:
    data = imported.copy(tmp_path)
    assert result(call(data, "compact"))["rollups"] > 0
    assert result(call(data, "compact"))["rollups"] == 0
    written = set((data / "lake" / "rollups").rglob("coverage.json"))
    truncated = next(iter(written)).with_name("devices.parquet")
    truncated.write_bytes(b"")
    assert faults(data) == [
        f"{truncated} has 0 bytes, not {imported_size(truncated)}; readership rebuild writes the rollups again"
    ]
    done = result(call(data, "rebuild", "--processes", "2"))
    assert done["rollups"] >= len(written)
    assert len(written & set((data / "lake" / "rollups").rglob("coverage.json"))) == 0
    assert all(finding["fault"] is None for finding in result(call(data, "doctor")))


def imported_size(parquet: Path) -> int:
    """Return the size of a file that `coverage.json` names."""
    size: int = json.loads(parquet.with_name("coverage.json").read_text())["sizes"][parquet.name]
    return size


@pytest.mark.long
def test_doctor_finds_no_fault_in_intact_data(imported: Imported) -> None:
    findings = result(call(imported.data, "doctor"))
    assert len(findings) >= 4
    assert all(finding["invariant"] and finding["fault"] is None for finding in findings)
    old_lists = age_warning(shipped().values(), datetime.now(UTC))
    command = f"{COMMAND} --data {imported.data} ranges refresh"
    assert findings[-1]["warning"] == (old_lists and f"{old_lists.text()}; run {command}, and restart the service")


@pytest.mark.long
def test_beacon_beside_a_log_is_a_warning_of_import_and_doctor_without_a_policy(data: Path, tmp_path: Path) -> None:
    def imported(path: str) -> str:
        file = tmp_path / "access.log"
        with file.open("a") as log:
            log.write(LINE.format(path))
        done = call(data, "import", PROJECT, str(file))
        assert done.status == 0
        return done.err

    def followed(path: str) -> str:
        """Return the messages of a command that follows a new log until it has logged a warning."""
        file, log = tmp_path / "followed.log", tmp_path / "stderr"
        file.write_text(LINE.format(path))
        with log.open("wb") as stderr:
            command = [COMMAND, "--data", data, "import", PROJECT, file, "--follow"]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr)
            until(lambda: b"counted twice" in log.read_bytes())
            process.terminate()
            assert process.wait(60) == 0
        return log.read_text()

    def warnings() -> list[str]:
        findings = result(call(data, "doctor"))
        return [finding["warning"] for finding in findings if "counted twice" in (finding["warning"] or "")]

    assert imported("/a") == ""
    with closing(Site(data, is_new=False)) as site:
        site.post(view(source="beacon", project_id=PROJECT))
    err = imported("/b")
    assert err.startswith(f"Warning: {PROJECT}: beacon and log both have views of people on 1 day")
    assert err.endswith(f"; readership project policy {PROJECT} shows and sets which sources count\n")
    assert warnings() == [err.removeprefix("Warning: ").rstrip()]
    assert "warning: site: beacon" in call(data, "doctor", "--format", "table").out.replace("\n", " ")
    log = followed("/d")
    assert "beacon and log both have views of people on 1 day" in log
    assert log.count("counted twice") == 1
    call(data, "project", "policy", PROJECT, "beacon_people_log_machines")
    assert imported("/c") == ""


def faults(data: Path) -> list[str]:
    """Return the faults that doctor prints, with exit status 1 and nothing on standard error."""
    done = call(data, "doctor")
    assert (done.status, done.err) == (1, "")
    return [finding["fault"] for finding in json.loads(done.out) if finding["fault"]]


def test_doctor_names_a_missing_parquet_file(imported: Imported, tmp_path: Path) -> None:
    data = imported.copy(tmp_path)
    gone = next((data / "lake" / "hits").glob("*=2026-*/*.parquet"))
    gone.unlink()
    assert any(gone.name in fault for fault in faults(data))


@pytest.mark.long
def test_commands_name_a_missing_file_in_one_line(imported: Imported, tmp_path: Path) -> None:
    data = imported.copy(tmp_path)
    hits = DeltaTable(str(data / "lake" / "hits"))
    hits.update(updates={"ruleset": "'older'"})
    # The flush records the commit: recovery renames a commit that is not recorded.
    assert call(data, "flush").status == 0
    gone = Path(hits.file_uris()[0])
    gone.unlink()
    for command in (
        ("sql", "SELECT count(DISTINCT user_agent) AS n FROM hits"),
        ("reclassify", "--dry-run"),
        ("rebuild",),
        ("project", "delete", PROJECT, "--yes"),
    ):
        message = complaint(call(data, *command))
        assert gone.name in message, command
        assert "run readership doctor" in message


@pytest.mark.long
@pytest.mark.parametrize("options", [(), ("--processes", "2")], ids=str)
def test_compact_does_the_rest_of_its_work_and_names_damaged_partitions(data: Path, options: tuple[str, ...]) -> None:
    days = [NOON + months * 31 * DAY for months in (-3, -2, -1, 0)]
    with closing(Site(data, is_new=False)) as site:
        for _ in range(2):
            site.post(*(view(ts=day) for day in days))
            site.load()
        damaged = {file.partition: Path(file.path) for file in site.state(HITS_TABLE).files}
        names = sorted(damaged)
        for name in names[1:3]:
            damaged[name].write_bytes(b"PAR1 and no more")
        unused = damaged[names[0]].with_name("part-unused.parquet")
        unused.touch()
        site.age()
        done = call(data, "compact", *options)
        compacted = Counter(file.partition for file in site.state(HITS_TABLE).files)
    assert compacted == {names[0]: 1, names[1]: 2, names[2]: 2, names[3]: 1}
    assert len(list((data / "lake" / "rollups").rglob("coverage.json"))) == 2
    assert not unused.exists()
    assert (done.status, done.out) == (1, "")
    header, *errors = done.err.splitlines()
    assert header == "Error: several actions failed:"
    for name in names[1:3]:
        [of_day] = [error for error in errors if error.endswith(f"; in hits of {name}; in the compaction; {DOCTOR}")]
        of_rollup = f"; in the rollup of {name}; in the new rollups; {DOCTOR}"
        [of_month] = [error for error in errors if error.endswith(of_rollup)]
        assert damaged[name].name in of_day
        assert damaged[name].name in of_month
    assert len(errors) == 4


def test_compact_names_the_damaged_partition_in_one_line(data: Path) -> None:
    with closing(Site(data, is_new=False)) as site:
        for _ in range(2):
            site.post(view(ts=datetime.now(UTC)))  # its month gets no rollup yet
            site.load()
        [file, _] = site.state(HITS_TABLE).files
    Path(file.path).write_bytes(b"PAR1 and no more")
    message = complaint(call(data, "compact"))
    assert Path(file.path).name in message
    assert message.endswith(f"; in hits of {file.partition}; in the compaction; {DOCTOR}\n")


def test_doctor_finds_a_hot_log_that_is_no_database(imported: Imported, tmp_path: Path) -> None:
    data = imported.copy(tmp_path)
    for name in ("hot.sqlite-wal", "hot.sqlite-shm"):
        (data / name).unlink(missing_ok=True)
    (data / "hot.sqlite").write_bytes(1000 * b"no database")
    (fault,) = faults(data)
    assert "database" in fault
