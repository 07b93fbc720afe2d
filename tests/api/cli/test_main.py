"""The program: errors in one line, usage, help, and the data folder."""

import errno
import gzip
import json
import os
import pty
import re
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from api.cli.main import COMMANDS, main, os_error_message
from tests.api.cli.console import (
    FIREFOX,
    SAMPLE,
    call,
    complaint,
)
from tests.processes.running import COMMAND, PROJECT, new_key, readership_process


@pytest.mark.long
def test_command_prints_a_table_on_a_terminal(data: Path) -> None:
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    subprocess.run([COMMAND, "--data", data, "project", "list"], stdout=theirs, env=environ, timeout=60, check=True)
    os.close(theirs)
    text = os.read(ours, 65_536).decode()
    os.close(ours)
    assert "created" in text
    assert PROJECT in text
    assert not text.lstrip().startswith(("[", "{"))


@pytest.mark.long
def test_reader_of_standard_output_may_end_early(tmp_path: Path) -> None:
    """Run the equivalent of `readership classify --format ndjson < user_agents | head -1`."""
    agents = tmp_path / "agents"
    agents.write_text(20_000 * f"{FIREFOX}\n")
    with agents.open("rb") as lines:
        classify = subprocess.Popen(
            [COMMAND, "classify", "--format", "ndjson"], stdin=lines, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
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
    "key of no such project": (["key", "revoke", "ci", "--project", "nobody"], {}, "nobody"),
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
        "{folder}/cut.gz: there is a file in place of a folder",
    ),
    "data folder is a file": (
        ["--data", "{folder}/cut.gz", "serve", "--port", "0"],
        {},
        "{folder}/cut.gz: there is a file in place of a folder",
    ),
    "no such file to import": (
        ["import", PROJECT, "/nowhere/access.log"],
        {},
        "/nowhere/access.log: there is no such file",
    ),
    "no such folder to import": (["import", PROJECT, "{folder}"], {}, "{folder} is a folder"),
    "lake is a file": (
        ["--data", "{folder}/spoilt", "flush"],
        {},
        "{folder}/spoilt/lake: there is a file in place of a folder",
    ),
}


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Return the values of ERRORS: a folder with damaged files and a data folder, and the port of another program."""
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
def test_error_is_one_line_that_names_its_cause(
    names: dict[str, str], arguments: list[str], environ: dict[str, str], named: str
) -> None:
    formatted = [each.format(**names) for each in arguments]
    complained = complaint(call(Path(names["folder"]) / "data", *formatted, **environ))
    assert named.format(**names) in complained
    assert "[Errno" not in complained


def test_command_names_a_read_only_control_database_in_one_line(tmp_path: Path) -> None:
    new_key(tmp_path / "data")
    url = f"sqlite:///file:{tmp_path / 'data' / 'control.sqlite'}?mode=ro&uri=true"
    done = call(tmp_path / "data", "project", "create", "new", READERSHIP_DATABASE_URL=url)
    assert complaint(done) == "Error: the control database: attempt to write a readonly database\n"


@pytest.mark.long
def test_command_on_a_control_database_without_a_column_ends_with_a_traceback(tmp_path: Path) -> None:
    new_key(tmp_path / "data")
    with sqlite3.connect(tmp_path / "data" / "control.sqlite") as connection:
        connection.execute("ALTER TABLE projects RENAME COLUMN origins TO other")
    connection.close()
    done = readership_process("--data", str(tmp_path / "data"), "project", "list")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "no such column: origins" in done.stderr


@pytest.mark.parametrize("arguments", USAGE_ERRORS.values(), ids=USAGE_ERRORS)
def test_wrong_arguments_end_with_the_usage_and_exit_status_2(data: Path, arguments: list[str]) -> None:
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


def test_data_folder_is_that_of_the_option_or_the_environment_or_the_default(
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


def test_message_of_a_missing_file_has_its_path(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        (tmp_path / "log").read_bytes()
    assert os_error_message(raised.value) == f"{tmp_path}/log: there is no such file"


def test_message_of_a_full_disk_has_no_path() -> None:
    with Path("/dev/full").open("wb", buffering=0) as full, pytest.raises(OSError, match="No space") as raised:
        full.write(b"x")
    assert os_error_message(raised.value) == "the disk is full"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ELOOP, os.strerror(errno.ELOOP), "/a/loop"), "/a/loop: Too many levels of symbolic links"),
        (OSError(errno.EACCES, os.strerror(errno.EACCES), "/a"), "/a: this user has no permission"),
        (OSError("Not a gzipped file"), "Not a gzipped file"),
    ],
)
def test_message_of_an_error_has_its_path_and_no_number(error: OSError, message: str) -> None:
    assert os_error_message(error) == message


def test_message_of_an_error_of_arrow_has_no_number(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileNotFoundError) as raised:
        pq.ParquetFile(str(tmp_path / "folder" / "missing" / "x"))
    assert "rrno" not in os_error_message(raised.value)
    assert "missing" in os_error_message(raised.value)


def test_each_command_is_in_the_table_of_the_docs() -> None:
    rows = (Path(__file__).parents[3] / "docs" / "running.md").read_text(encoding="utf-8")
    for name, place in COMMANDS.items():
        module, function = place.split(":")
        command = getattr(import_module(module), function)
        subcommands = list(command.commands) if isinstance(command, click.Group) else [""]
        for subcommand in subcommands:
            assert re.search(rf"^\|.*`{name} ?(?:\w+\\\|)*{subcommand}\b", rows, re.MULTILINE), (name, subcommand)
