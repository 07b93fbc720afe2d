"""Every command as a shell sees it: what comes on standard output, what on standard error, and the exit status."""

import gzip
import json
import os
import pty
import re
import shutil
import socket
import sqlite3
import subprocess
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable

from api.cli.main import main
from tests.running import COMMAND, PROJECT, Running, new_key, readership, readership_process
from tests.waiting import until

SAMPLE = Path(__file__).parents[3] / "sample_data"
EXPECTED = json.loads((SAMPLE / "expected_views.json").read_text())
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
KEY = re.compile(r"rdr_admin_[0-9A-Za-z]{38}")
DAY_S = 86_400


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    status: int
    out: str
    err: str


def call(data: Path, *arguments: str, stdin: str = "", **environ: str) -> Done:
    """A command over a data folder, in this process: a start costs a second each."""
    ended = CliRunner().invoke(main, ["--data", str(data), *arguments], input=stdin, env=environ)
    assert isinstance(ended.exception, SystemExit | None), "".join(traceback.format_exception(ended.exception))
    return Done(ended.exit_code, ended.stdout, ended.stderr)


def result(done: Done) -> Any:
    """What a command that did its work says on standard output when it is piped: JSON, one line."""
    assert done.status == 0, done.err
    assert done.out.count("\n") == 1
    return json.loads(done.out)


def complaint(done: Done) -> str:
    """What a command that could not do its work says: one line, on standard error alone."""
    assert (done.status, done.out) == (1, "")
    assert re.fullmatch(r"Error: [^\n]+\n", done.err), done.err
    return done.err


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with the project `site`, without a service."""
    new_key(tmp_path / "data")
    return tmp_path / "data"


@dataclass(frozen=True)
class Imported:
    """A data folder with the sample log in it, for tests to copy, a key of its project, and what the import said."""

    data: Path
    key: str
    said: Done

    def copy(self, folder: Path) -> Path:
        return Path(shutil.copytree(self.data, folder / "data"))


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Imported:
    data = tmp_path_factory.mktemp("imported") / "data"
    key = new_key(data)
    done = readership("--data", str(data), "import", PROJECT, str(SAMPLE / "access.log"))
    return Imported(data, key, Done(done.returncode, done.stdout, done.stderr))


def test_projects_are_made_listed_and_given_origins(data: Path) -> None:
    origins = ("--origin", "https://docs.example", "--origin", "HTTP://LocalHost:80/")
    made = result(call(data, "project", "create", "docs", *origins))
    assert (made["id"], made["origins"]) == ("docs", ["https://docs.example", "http://localhost"])
    assert made.keys() == {"id", "origins", "created_s"}
    assert result(call(data, "project", "create", "blog"))["origins"] == []
    assert [(each["id"], each["origins"]) for each in result(call(data, "project", "list"))] == [
        ("blog", []),
        ("docs", ["https://docs.example", "http://localhost"]),
        (PROJECT, ["*"]),
    ]
    assert result(call(data, "project", "origins", "docs", "https://new.example"))["origins"] == ["https://new.example"]


def test_a_key_is_printed_alone_once_listed_without_its_secret_and_revoked(data: Path) -> None:
    made = call(data, "key", "create", PROJECT, "--name", "ci", "--scope", "read", "--expires-days", "30")
    assert made.status == 0
    assert KEY.fullmatch(made.out.removesuffix("\n"))
    assert made.out.endswith("\n")
    assert "rdr_admin_" not in made.err

    listed = call(data, "key", "list", PROJECT)
    found = next(each for each in result(listed) if each["name"] == "ci")
    assert (found["project"], found["scope"]) == (PROJECT, "read")
    assert found["expires_s"] - found["created_s"] == 30 * DAY_S
    assert found["revoked_s"] is None
    assert "rdr_admin_" not in listed.out

    assert result(call(data, "key", "revoke", "ci"))["id"] == found["id"]
    again = next(each for each in result(call(data, "key", "list")) if each["name"] == "ci")
    assert abs(again["revoked_s"] - time.time()) < 60


def test_a_key_writes_and_does_not_expire_unless_told(data: Path) -> None:
    result(call(data, "project", "create", "docs"))
    assert call(data, "key", "create", "docs").status == 0
    (found,) = result(call(data, "key", "list", "docs"))
    assert (found["scope"], found["expires_s"]) == ("write", None)


def test_the_sample_log_imported_is_the_expected_export_in_full(imported: Imported, tmp_path: Path) -> None:
    summary = result(imported.said)
    assert summary["lines"] == EXPECTED["lines"]
    assert (summary["human"], summary["ai"]) == (EXPECTED["totals"]["human"], EXPECTED["totals"]["ai"])
    assert summary["bot"] == EXPECTED["bots"]
    assert summary["skipped"] == EXPECTED["skipped"]
    assert summary["agents"] == EXPECTED["by_agent"]
    assert summary["page_views"] == summary["human"] + summary["ai"] + summary["bot"]
    assert (summary["dry_run"], summary["known"]) == (False, 0)
    assert summary["formats"] == {str(SAMPLE / "access.log"): "combined"}
    assert summary["lines_per_s"] == pytest.approx(summary["lines"] / summary["seconds"], rel=0.1)
    assert imported.said.err == ""

    service = Running(imported.copy(tmp_path), key=imported.key).start()
    with httpx.Client(headers=service.auth) as client:

        def export(query: str = "") -> Any:
            return client.get(f"{service.views}?limit=250&{query}").json()

        assert export() == {"totals": EXPECTED["totals"], "views": EXPECTED["views"], "hasMore": False}
        days = sorted(EXPECTED["by_day"])
        for day, end in zip(days, [*days[1:], "2026-10-01"], strict=True):
            totals = export(f"dateFrom={day}&dateTo={end}")["totals"]
            assert {name: totals[name] for name in ("human", "ai")} == EXPECTED["by_day"][day], day
    assert service.stop() == 0


def test_an_import_reads_gzip_standard_input_and_several_files_beside_a_running_service(
    service: Running, tmp_path: Path
) -> None:
    line = f'192.0.2.1 - - [01/Mar/1999:12:00:00 +0000] "GET {{}} HTTP/1.1" 200 5 "-" "{FIREFOX}"\n'
    plain, packed = tmp_path / "access.log", tmp_path / "access.log.1.gz"
    plain.write_text(line.format("/a") + line.format("/b"))
    packed.write_bytes(gzip.compress(line.replace("12:00:00", "12:00:01").format("/a").encode()))
    stdin = line.format("/c") + line.format("/d") + "nonsense\n"
    summary = result(call(service.data, "import", PROJECT, str(plain), str(packed), "-", stdin=stdin))
    assert (summary["lines"], summary["human"], summary["skipped"]) == (6, 5, {"malformed": 1})
    found = {row["path"]: row["total"] for row in service.get("dateFrom=1999-03-01&dateTo=1999-03-02")["views"]}
    assert found == {"/a": 2, "/b": 1, "/c": 1, "/d": 1}


def test_a_dry_run_says_what_an_import_would_and_stores_nothing(data: Path) -> None:
    file = str(SAMPLE / "access.log")
    dry = result(call(data, "import", PROJECT, file, "--dry-run"))
    assert dry["dry_run"] is True
    assert result(call(data, "sql", "SELECT count(*) AS hits FROM hits")) == {"hits": 0}
    done = result(call(data, "import", PROJECT, file))
    for differing in ("dry_run", "seconds", "lines_per_s"):
        del dry[differing], done[differing]
    assert done == dry
    again = result(call(data, "import", PROJECT, file))
    assert (again["lines"], again["page_views"], again["known"]) == (0, 0, EXPECTED["lines"])


def test_an_import_gives_arrows_memory_back_after_a_second_unless_told(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    log.touch()
    for told, found in (("5", "5"), (None, "1000")):
        monkeypatch.delenv("MIMALLOC_PURGE_DELAY", raising=False)
        if told:
            monkeypatch.setenv("MIMALLOC_PURGE_DELAY", told)
        call(data, "import", PROJECT, str(log), "--format", "combined")
        assert os.environ["MIMALLOC_PURGE_DELAY"] == found


def test_paths_are_included_and_excluded_as_told(data: Path, tmp_path: Path) -> None:
    line = f'192.0.2.1 - - [01/Mar/1999:12:00:00 +0000] "GET {{}} HTTP/1.1" 200 5 "-" "{FIREFOX}"\n'
    log = tmp_path / "access.log"
    log.write_text("".join(map(line.format, ["/a", "/feed.xml", "/other.xml", "/admin/a"])))
    told = result(call(data, "import", PROJECT, str(log), "--include", "/feed.xml", "--exclude", "/admin*"))
    assert (told["page_views"], told["skipped"]) == (2, {"excluded": 1, "not_a_page": 1})


def test_an_import_asks_the_control_database_that_is_set_for_its_project(tmp_path: Path) -> None:
    data, other, file = tmp_path / "data", tmp_path / "other", str(SAMPLE / "access.log")
    environ = {"READERSHIP_DATABASE_URL": f"sqlite:///{tmp_path / 'elsewhere.sqlite'}"}
    assert call(data, "project", "create", "here").status == 0
    assert call(other, "project", "create", "there", **environ).status == 0
    assert result(call(other, "import", "there", file, "--dry-run", **environ))["page_views"] == EXPECTED["page_views"]
    assert "there is no project 'there'" in complaint(call(data, "import", "there", file))
    assert "there is no project 'here'" in complaint(call(other, "import", "here", file, **environ))


def test_an_import_that_misses_a_file_keeps_nothing_of_the_others(data: Path, tmp_path: Path) -> None:
    """So that the same call, once mended, counts nothing twice."""
    many = tmp_path / "many.log"
    many.write_bytes(5 * (SAMPLE / "access.log").read_bytes())
    complaint(call(data, "import", PROJECT, str(many), str(tmp_path / "missing.log")))
    assert result(call(data, "flush"))["rows"] == 0
    assert not list((data / "lake" / "hits").glob("*/*.parquet"))


def test_a_user_agent_is_classified_from_an_argument_or_a_line_each(data: Path) -> None:
    gptbot = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; GPTBot/1.3; +https://openai.com/gptbot"
    one = result(call(data, "classify", gptbot))
    assert set(one) == {"userAgent", "traffic", "agent", "operator", "purpose", "rule"}
    assert (one["userAgent"], one["traffic"], one["agent"]) == (gptbot, "ai", "GPTBot")
    assert (one["operator"], one["purpose"]) == ("OpenAI", "training")
    assert one["rule"]

    lines = f"{gptbot}\n{FIREFOX}\r\n\ncurl/8.5.0".encode() + b"\n\xff\xfe"
    done = subprocess.run([COMMAND, "classify"], input=lines, capture_output=True, timeout=60, check=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["userAgent"] for each in found[:4]] == [gptbot, FIREFOX, "", "curl/8.5.0"]
    assert [each["traffic"] for each in found[:4]] == ["ai", "human", "bot", "bot"]
    assert len(found) == 5
    assert found[0] == one


def test_flush_and_compact_tell_what_they_did_and_leave_the_data_whole(start: Callable[..., Running]) -> None:
    service = start()
    until((service.data / "lake" / ".tidied").exists)  # a service tidies at its start, and loads what waits for it
    for i in range(3):
        hit = {"path": f"/{i}", "userAgent": FIREFOX, "timestamp": "2025-03-01T12:00:00Z"}
        assert service.post(hit).status_code == 202
        assert result(call(service.data, "flush"))["rows"] == 1
    before = service.get()
    assert result(call(service.data, "flush"))["rows"] == 0
    done = result(call(service.data, "compact"))
    assert (done["partitions"], done["files_before"], done["files_after"]) == (2, 6, 2)
    assert service.get() == before
    assert all(finding["fault"] is None for finding in result(call(service.data, "doctor")))


def test_doctor_finds_no_fault_in_whole_data(imported: Imported) -> None:
    findings = result(call(imported.data, "doctor"))
    assert len(findings) >= 4
    assert all(finding["invariant"] and finding["fault"] is None for finding in findings)


def faults(data: Path) -> list[str]:
    """What doctor finds wrong: exit status 1, every finding on standard output, no word beside."""
    done = call(data, "doctor")
    assert (done.status, done.err) == (1, "")
    return [finding["fault"] for finding in json.loads(done.out) if finding["fault"]]


@pytest.mark.parametrize("table", ["hits", "daily_views"])
def test_doctor_names_a_parquet_file_that_is_gone(imported: Imported, tmp_path: Path, table: str) -> None:
    data = imported.copy(tmp_path)
    gone = next((data / "lake" / table).glob("*=2026-*/*.parquet"))
    gone.unlink()
    assert any(gone.name in fault for fault in faults(data))


def test_doctor_names_a_parquet_file_that_is_cut_short(imported: Imported, tmp_path: Path) -> None:
    data = imported.copy(tmp_path)
    cut = next((data / "lake" / "hits").glob("*=2026-*/*.parquet"))
    cut.write_bytes(cut.read_bytes()[:100])
    assert any(cut.name in fault for fault in faults(data))


COMMANDS_OVER_FILES = (
    ("sql", "SELECT count(DISTINCT user_agent) AS n FROM hits"),
    ("reclassify", "--dry-run"),
    ("rebuild",),
    ("project", "delete", PROJECT, "--yes"),
)


@pytest.mark.parametrize("command", COMMANDS_OVER_FILES, ids=" ".join)
def test_a_command_that_misses_a_file_says_so_in_one_line(
    imported: Imported, tmp_path: Path, command: tuple[str, ...]
) -> None:
    data = imported.copy(tmp_path)
    hits = DeltaTable(str(data / "lake" / "hits"))
    hits.update(updates={"ruleset": "'older'"})
    assert call(data, "flush").status == 0  # records the commit, which would be set aside as that of a killed process
    gone = Path(hits.file_uris()[0])
    gone.unlink()
    said = complaint(call(data, *command))
    assert gone.name in said
    assert "run readership doctor" in said


def test_a_command_over_a_file_that_is_cut_short_says_so_in_one_line(imported: Imported, tmp_path: Path) -> None:
    data = imported.copy(tmp_path)
    cut = Path(DeltaTable(str(data / "lake" / "hits")).file_uris()[0])
    cut.write_bytes(cut.read_bytes()[:100])
    assert cut.name in complaint(call(data, "rebuild"))


def test_doctor_finds_a_count_changed_behind_its_back(imported: Imported, tmp_path: Path) -> None:
    data = imported.copy(tmp_path)
    counted = DeltaTable(str(data / "lake" / "daily_views"))
    one_row = "path = '/blog' AND date = '2026-09-07' AND traffic = 'human'"
    assert counted.update(updates={"views": "views + 1"}, predicate=one_row)["num_updated_rows"] == 1
    (fault,) = faults(data)
    assert "/blog" in fault


def test_doctor_finds_a_hit_removed_behind_its_back(imported: Imported, tmp_path: Path) -> None:
    data = imported.copy(tmp_path)
    removed = DeltaTable(str(data / "lake" / "hits")).delete("path = '/docs' AND date = '2026-09-07'")
    assert removed["num_deleted_rows"] > 0
    (fault,) = faults(data)
    assert "/docs" in fault


def test_doctor_says_when_the_hot_log_is_no_database(imported: Imported, tmp_path: Path) -> None:
    data = imported.copy(tmp_path)
    for name in ("hot.sqlite-wal", "hot.sqlite-shm"):
        (data / name).unlink(missing_ok=True)
    (data / "hot.sqlite").write_bytes(1000 * b"no database")
    (fault,) = faults(data)
    assert "database" in fault


def test_a_deleted_project_takes_its_rows_keys_and_read_logs_along(
    start: Callable[..., Running], tmp_path: Path
) -> None:
    service = start()
    kept = {"Authorization": f"Bearer {new_key(service.data, 'kept')}"}
    url = service.views.replace(f"/{PROJECT}/", "/kept/")
    hit = {"path": "/a", "userAgent": FIREFOX, "eventId": "e1"}
    assert service.post(hit).status_code == 202
    log = tmp_path / "access.log"
    log.write_text(f'192.0.2.1 - - [01/Mar/1999:12:00:00 +0000] "GET /b HTTP/1.1" 200 5 "-" "{FIREFOX}"\n')
    assert result(call(service.data, "import", PROJECT, str(log)))["page_views"] == 1
    assert service.post({**hit, "eventId": "e2"}).status_code == 202
    httpx.post(url.replace("/views", "/hits"), json=hit, headers=kept)

    asked = call(service.data, "project", "delete", PROJECT, stdin="n\n")
    assert (asked.status, asked.out) == (1, "")
    assert service.get()["totals"]["total"] == 3
    assert result(call(service.data, "project", "delete", PROJECT, "--yes"))["id"] == PROJECT
    assert httpx.get(service.views, headers=service.auth).status_code == 401
    assert [each["id"] for each in result(call(service.data, "project", "list"))] == ["kept"]

    service.key = new_key(service.data)
    assert service.get() == {"totals": {"human": 0, "ai": 0, "total": 0}, "views": [], "hasMore": False}
    assert service.post(hit).json() == {"accepted": 1, "duplicates": 0, "rejected": []}
    assert result(call(service.data, "import", PROJECT, str(log)))["page_views"] == 1
    assert service.get()["totals"] == {"human": 2, "ai": 0, "total": 2}
    assert httpx.get(url, headers=kept).json()["totals"]["human"] == 1
    assert all(finding["fault"] is None for finding in result(call(service.data, "doctor")))


@contextmanager
def in_background(*arguments: str | Path, **options: Any) -> Iterator[Callable[[], bool]]:
    """A command that runs until SIGTERM, which it obeys with status 0; what it gives says whether it still runs."""
    process = subprocess.Popen([COMMAND, *arguments], stderr=subprocess.DEVNULL, **options)

    def runs() -> bool:
        assert process.poll() is None, "it ended by itself"
        return True

    try:
        yield runs
    finally:
        process.terminate()
        status = process.wait(60)
    assert status == 0


def test_the_worker_loads_what_a_dead_service_left(start: Callable[..., Running]) -> None:
    service = start()
    assert service.post({"path": "/a", "userAgent": FIREFOX, "timestamp": "2025-03-01T12:00:00Z"}).status_code == 202
    service.kill()
    day = service.data / "lake" / "hits" / "date=2025-03-01"
    assert not day.exists()
    environ = {**os.environ, "READERSHIP_LOAD_EVERY_S": "1"}
    with in_background("--data", service.data, "worker", env=environ) as runs:
        until(lambda: runs() and list(day.glob("*.parquet")), within_s=30)
    service.start()
    assert service.get()["totals"]["total"] == 1


@pytest.mark.needs("curl")
def test_the_demo_shows_an_export_and_commands_that_work_when_pasted(tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    address = re.compile(r"http://127\.0\.0\.1:\d+(?=/v1/classify)")
    with (
        shown.open("wb") as output,
        in_background("--data", tmp_path / "data", "demo", "--port", "0", stdout=output) as runs,
    ):
        url = until(lambda: runs() and address.search(shown.read_text()), within_s=60)[0]
        until(lambda: runs() and _is_up(url), within_s=30)
        text = shown.read_text()
        pasted = subprocess.run(
            ["bash"], check=False, input=text[text.index("# ") :], capture_output=True, text=True, timeout=60
        )
    assert all(str(row["path"]) in text for row in EXPECTED["views"][:5])
    assert f"{EXPECTED['totals']['total']:,}" in text
    assert pasted.stdout.count('"accepted":1') == 2
    assert '"path":"/docs/hello","human":1,"ai":1,"total":2' in pasted.stdout
    assert '"agent":"GPTBot"' in pasted.stdout


def _is_up(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz").status_code == 200
    except httpx.TransportError:
        return False


def test_a_terminal_gets_a_table(data: Path) -> None:
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    subprocess.run([COMMAND, "--data", data, "project", "list"], stdout=theirs, env=environ, timeout=60, check=True)
    os.close(theirs)
    text = os.read(ours, 65_536).decode()
    os.close(ours)
    assert "created" in text
    assert PROJECT in text
    assert not text.lstrip().startswith(("[", "{"))


def test_an_import_on_a_terminal_shows_its_progress_and_a_table(data: Path) -> None:
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    command = [COMMAND, "--data", data, "import", PROJECT, SAMPLE / "access.log"]
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environ)
    os.close(theirs)
    text = _all_of(ours)
    assert process.wait(60) == 0
    assert "lines/s" in text
    assert re.search(rf"page views\W+{EXPECTED['page_views']:,}", text)
    assert re.search(rf"GPTBot\W+{EXPECTED['by_agent']['GPTBot']:,}", text)


def _all_of(terminal: int) -> str:
    """Whatever is written to a terminal until its last writer is gone, which Linux tells by an error."""
    pieces = []
    with suppress(OSError):
        while piece := os.read(terminal, 65_536):
            pieces.append(piece)
    os.close(terminal)
    return b"".join(pieces).decode()


def test_a_reader_that_goes_away_is_no_fault(tmp_path: Path) -> None:
    """As in `readership classify < user_agents | head -1`."""
    agents = tmp_path / "agents"
    agents.write_text(20_000 * f"{FIREFOX}\n")
    with agents.open("rb") as lines:
        classify = subprocess.Popen([COMMAND, "classify"], stdin=lines, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert classify.stdout is not None
    assert json.loads(classify.stdout.readline())["traffic"] == "human"
    classify.stdout.close()
    classify.stdout = None
    assert classify.communicate(timeout=60)[1] == b""


USAGE_ERRORS = {
    "no such command": ["frobnicate"],
    "no argument": ["key", "create"],
    "no file": ["import", PROJECT],
    "dry run of what is followed": ["import", PROJECT, "--follow", "--dry-run", "a.log"],
    "standard input followed": ["import", PROJECT, "--follow", "-"],
    "bad scope": ["key", "create", PROJECT, "--scope", "admin"],
    "bad days": ["key", "create", PROJECT, "--expires-days", "0"],
    "bad port": ["serve", "--port", "65536"],
    "no worker": ["serve", "--workers", "0"],
}
ERRORS: dict[str, tuple[list[str], dict[str, str], str]] = {
    "project taken": (["project", "create", PROJECT], {}, PROJECT),
    "bad project id": (["project", "create", "No_Slug"], {}, "No_Slug"),
    "project id too long": (["project", "create", "a" * 64], {}, "63"),
    "bad origin": (["project", "create", "x", "--origin", "example.com"], {}, "example.com"),
    "origin with a path": (
        ["project", "create", "x", "--origin", "https://example.com/a"],
        {},
        "https://example.com/a",
    ),
    "key of no project": (["key", "create", "nobody"], {}, "nobody"),
    "keys of no project": (["key", "list", "nobody"], {}, "nobody"),
    "no such key": (["key", "revoke", "nothing"], {}, "nothing"),
    "import into no project": (["import", "nobody", str(SAMPLE / "access.log")], {}, "nobody"),
    "deletion of no project": (["project", "delete", "nobody", "--yes"], {}, "nobody"),
    "no such file": (["import", PROJECT, "/nowhere/access.log"], {}, "/nowhere/access.log"),
    "a folder for a file": (["import", PROJECT, str(SAMPLE)], {}, str(SAMPLE)),
    "gzip cut short": (["import", PROJECT, "{folder}/cut.gz"], {}, "cut.gz"),
    "no log": (["import", PROJECT, "{folder}/plain.gz"], {}, "--format"),
    "most lines malformed": (["import", PROJECT, "{folder}/plain.gz", "--format", "common"], {}, "most lines"),
    "no such format": (["import", PROJECT, str(SAMPLE / "access.log"), "--format", "clf"], {}, "combined"),
    "a folder to follow": (["import", PROJECT, str(SAMPLE), "--follow"], {}, "folder"),
    "gzip spoilt": (["import", PROJECT, "{folder}/spoilt.gz"], {}, "spoilt.gz"),
    "one file of two missing": (
        ["import", PROJECT, str(SAMPLE / "access.log"), "/nowhere/b.log"],
        {},
        "/nowhere/b.log",
    ),
    "bad number": (["flush"], {"READERSHIP_LOAD_ROWS": "many"}, "READERSHIP_LOAD_ROWS"),
    "number below its least": (["serve"], {"READERSHIP_BEACONS_PER_MINUTE": "0"}, "READERSHIP_BEACONS_PER_MINUTE"),
    "backlog below a post": (
        ["serve"],
        {"READERSHIP_BACKLOG_ROWS_MAX": "9999"},
        "READERSHIP_BACKLOG_ROWS_MAX must be a whole number of at least 10000",
    ),
    "negative number": (["doctor"], {"READERSHIP_RETENTION_DAYS": "-1"}, "READERSHIP_RETENTION_DAYS"),
    "bad database": (["project", "list"], {"READERSHIP_DATABASE_URL": "nonsense"}, "READERSHIP_DATABASE_URL"),
    "unknown database": (["project", "list"], {"READERSHIP_DATABASE_URL": "oracle9://x/y"}, "READERSHIP_DATABASE_URL"),
    "unreachable database": (
        ["project", "list"],
        {"READERSHIP_DATABASE_URL": "sqlite:////nowhere/c.sqlite"},
        "/nowhere/c.sqlite",
    ),
    "port in use": (["serve", "--port", "{port}"], {}, "{port}"),
    "bad host": (["serve", "--host", "256.0.0.1", "--port", "0"], {}, "256.0.0.1"),
    "data in a file": (["--data", "{folder}/cut.gz/data", "project", "list"], {}, "cut.gz"),
    "new data in a file": (
        ["--data", "{folder}/cut.gz/data", "project", "create", "x"],
        {},
        "{folder}/cut.gz is a file, not a folder",
    ),
    "data folder is a file": (
        ["--data", "{folder}/cut.gz", "serve", "--port", "0"],
        {},
        "{folder}/cut.gz is a file, not a folder",
    ),
    "no such file to import": (
        ["import", PROJECT, "/nowhere/access.log"],
        {},
        "there is no file /nowhere/access.log",
    ),
    "no such folder to import": (["import", PROJECT, "{folder}"], {}, "{folder} is a folder"),
    "lake is a file": (["--data", "{folder}/spoilt", "flush"], {}, "{folder}/spoilt/lake is a file, not a folder"),
}


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What the rows of ERRORS name: a folder with bad files and a data folder in it, and a port that is taken."""
    folder = tmp_path_factory.mktemp("errors")
    new_key(folder / "data")
    (folder / "spoilt").mkdir()
    (folder / "spoilt" / "lake").touch()
    packed = gzip.compress((SAMPLE / "access.log").read_bytes())
    (folder / "cut.gz").write_bytes(packed[: len(packed) // 2])
    (folder / "plain.gz").write_text("192.0.2.1 - -\n")
    (folder / "spoilt.gz").write_bytes(packed[:1000] + bytes(1000) + packed[2000:])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield {"folder": str(folder), "port": str(taken.getsockname()[1])}


@pytest.mark.parametrize(("arguments", "environ", "named"), ERRORS.values(), ids=ERRORS)
def test_what_cannot_be_done_is_told_in_one_line(
    names: dict[str, str], arguments: list[str], environ: dict[str, str], named: str
) -> None:
    given = [each.format(**names) for each in arguments]
    complained = complaint(call(Path(names["folder"]) / "data", *given, **environ))
    assert named.format(**names) in complained
    assert "[Errno" not in complained


def test_command_names_a_read_only_control_database_in_one_line(tmp_path: Path) -> None:
    new_key(tmp_path / "data")
    url = f"sqlite:///file:{tmp_path / 'data' / 'control.sqlite'}?mode=ro&uri=true"
    done = call(tmp_path / "data", "project", "create", "new", READERSHIP_DATABASE_URL=url)
    assert complaint(done) == "Error: the control database: attempt to write a readonly database\n"


def test_command_on_a_control_database_without_a_column_ends_with_a_traceback(tmp_path: Path) -> None:
    new_key(tmp_path / "data")
    with sqlite3.connect(tmp_path / "data" / "control.sqlite") as connection:
        connection.execute("ALTER TABLE projects RENAME COLUMN origins TO other")
    connection.close()
    done = readership_process("--data", str(tmp_path / "data"), "project", "list")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "no such column: projects.origins" in done.stderr


@pytest.mark.parametrize("arguments", USAGE_ERRORS.values(), ids=USAGE_ERRORS)
def test_a_wrong_call_is_told_with_its_usage_and_exit_status_2(data: Path, arguments: list[str]) -> None:
    done = call(data, *arguments)
    assert (done.status, done.out) == (2, "")
    assert "Usage: " in done.err


def test_help_and_version_need_no_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(main, ["--help"])
    assert shown.exit_code == 0
    commands = "serve worker demo project key import classify files flush compact rebuild reclassify doctor"
    for command in commands.split():
        assert re.search(rf"^  {command}\b", shown.stdout, re.MULTILINE), command
    assert re.search(r"\d+\.\d+\.\d+", CliRunner().invoke(main, ["--version"]).stdout)
    assert list(tmp_path.iterdir()) == []


def test_the_data_folder_is_the_one_given_or_that_of_the_environment_or_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    create = ["project", "create", "docs"]
    for arguments, environ in (
        ([], {"READERSHIP_DATA": None}),
        ([], {"READERSHIP_DATA": "elsewhere"}),
        (["--data", "given"], {"READERSHIP_DATA": "elsewhere"}),
    ):
        assert CliRunner().invoke(main, [*arguments, *create], env=environ).exit_code == 0
    assert {path.name for path in tmp_path.iterdir()} == {"data", "elsewhere", "given"}
