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
from tests.api.cli.console import FIREFOX, SAMPLE, call, complaint, result
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
def test_reader_of_standard_output_may_end_early() -> None:
    """Run the equivalent of `readership classify --format ndjson < user_agents | head -1`, line by line."""
    command = [COMMAND, "classify", "--format", "ndjson"]
    classify = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert classify.stdin is not None
    assert classify.stdout is not None
    classify.stdin.write(f"{FIREFOX}\n".encode())
    classify.stdin.flush()
    assert json.loads(classify.stdout.readline())["traffic"] == "human", "printed before the next row is read"
    classify.stdout.close()
    classify.stdout = None
    assert classify.communicate(20_000 * f"{FIREFOX}\n".encode(), timeout=60)[1] == b""


USAGE_ERRORS = [
    ["frobnicate"],
    ["key", "create"],
    ["import", PROJECT],
    ["import", PROJECT, "--follow", "--dry-run", "a.log"],
    ["import", PROJECT, "--follow", "-"],
    ["key", "create", PROJECT, "--scope", "admin"],
    ["key", "create", PROJECT, "--expires-days", "0"],
    ["serve", "--port", "65536"],
    ["serve", "--workers", "0"],
]
LOG, FOLDER = str(SAMPLE / "access.log"), str(SAMPLE)
ERRORS: list[tuple[list[str], str]] = [
    (["project", "create", PROJECT], PROJECT),
    (["project", "create", "No_Slug"], "No_Slug"),
    (["project", "create", "a" * 64], "63"),
    (["project", "create", "x", "--origin", "example.com"], "example.com"),
    (["project", "create", "x", "--origin", "https://example.com/a"], "https://example.com/a"),
    (["key", "create", "nobody"], "nobody"),
    (["key", "list", "nobody"], "nobody"),
    (["key", "revoke", "nothing"], "nothing"),
    (["key", "revoke", "ci", "--project", "nobody"], "nobody"),
    (["import", "nobody", LOG], "nobody"),
    (["project", "delete", "nobody", "--yes"], "nobody"),
    (["import", PROJECT, "/nowhere/access.log"], "/nowhere/access.log: there is no such file"),
    (["import", PROJECT, FOLDER], f"{FOLDER} is a folder"),
    (["import", PROJECT, "{folder}/cut.gz"], "cut.gz"),
    (["import", PROJECT, "{folder}/plain.gz"], "--format"),
    (["import", PROJECT, "{folder}/plain.gz", "--format", "common"], "most lines"),
    (["import", PROJECT, LOG, "--format", "clf"], "combined"),
    (["import", PROJECT, FOLDER, "--follow"], "folder"),
    (["import", PROJECT, "{folder}/spoilt.gz"], "spoilt.gz"),
    (["import", PROJECT, LOG, "/nowhere/b.log"], "/nowhere/b.log"),
    (["serve", "--port", "{port}"], "{port}"),
    (["serve", "--host", "256.0.0.1", "--port", "0"], "256.0.0.1"),
    (["--data", "{folder}/cut.gz/data", "project", "list"], "cut.gz"),
    (["--data", "{folder}/cut.gz/data", "project", "create", "x"], "cut.gz: there is a file in place of a folder"),
    (["--data", "{folder}/cut.gz", "serve", "--port", "0"], "{folder}/cut.gz: there is a file in place of a folder"),
    (["--data", "{folder}/spoilt", "flush"], "{folder}/spoilt/lake: there is a file in place of a folder"),
]
"""Arguments of commands that fail, and what their messages name."""
WRONG_SETTINGS = [
    ("flush", "LOAD_ROWS", "many", "READERSHIP_LOAD_ROWS"),
    ("serve", "BEACONS_PER_MINUTE", "0", "READERSHIP_BEACONS_PER_MINUTE"),
    ("serve", "BACKLOG_ROWS_MAX", "9999", "READERSHIP_BACKLOG_ROWS_MAX must be a whole number of at least 10000"),
    ("doctor", "RETENTION_DAYS", "-1", "READERSHIP_RETENTION_DAYS"),
    ("project list", "DATABASE_URL", "nonsense", "READERSHIP_DATABASE_URL"),
    ("project list", "DATABASE_URL", "oracle9://x/y", "READERSHIP_DATABASE_URL"),
    ("project list", "DATABASE_URL", "sqlite:////nowhere/c.sqlite", "/nowhere/c.sqlite"),
]


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


@pytest.mark.parametrize(("arguments", "named"), ERRORS, ids=str)
def test_error_is_one_line_that_names_its_cause(names: dict[str, str], arguments: list[str], named: str) -> None:
    formatted = [each.format(**names) for each in arguments]
    complained = complaint(call(Path(names["folder"]) / "data", *formatted))
    assert named.format(**names) in complained
    assert "[Errno" not in complained


def test_error_of_a_setting_is_one_line_that_names_it(names: dict[str, str]) -> None:
    for command, name, value, named in WRONG_SETTINGS:
        complained = complaint(call(Path(names["folder"]) / "data", *command.split(), **{f"READERSHIP_{name}": value}))
        assert named in complained
        assert "[Errno" not in complained


def test_control_database_may_be_a_uri_and_a_read_only_one_is_named_in_one_line(tmp_path: Path) -> None:
    new_key(tmp_path / "data")
    assert call(tmp_path / "data", "key", "list").status == 0  # a command creates the tables that it uses
    url = f"sqlite:///file:{tmp_path / 'data' / 'control.sqlite'}?mode=ro&uri=true"
    assert len(result(call(tmp_path / "data", "key", "list", READERSHIP_DATABASE_URL=url))) == 1
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


def test_wrong_arguments_end_with_the_usage_and_exit_status_2(data: Path) -> None:
    for arguments in USAGE_ERRORS:
        done = call(data, *arguments)
        assert (done.status, done.out) == (2, ""), arguments
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


@pytest.mark.long
def test_data_folder_is_from_the_option_environment_or_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_message_of_an_error_has_its_path_and_no_number() -> None:
    for error, message in (
        (OSError(errno.ELOOP, os.strerror(errno.ELOOP), "/a/loop"), "/a/loop: Too many levels of symbolic links"),
        (OSError(errno.EACCES, os.strerror(errno.EACCES), "/a"), "/a: this user has no permission"),
        (OSError("Not a gzipped file"), "Not a gzipped file"),
    ):
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
