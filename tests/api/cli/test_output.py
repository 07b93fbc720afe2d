"""The formats `json` and `ndjson` mean the same for every command that prints rows."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.api.cli.console import FIREFOX, call, result
from tests.processes.running import COMMAND

USER_AGENTS = f"{FIREFOX}\nGPTBot/1.3\n"
COMMANDS = [
    ["sql", "SELECT * FROM (VALUES (1, 'a'), (2, NULL)) AS t (n, text)"],
    *(command.split() for command in ("classify", "project list", "key list", "doctor")),
]


def test_json_is_one_array_ndjson_one_line_per_row_and_a_table_is_printed_on_request(data: Path) -> None:
    assert call(data, "project", "create", "other").status == 0
    assert call(data, "key", "create", "other").status == 0
    for command in COMMANDS:
        piped = call(data, *command, "--format", "json", stdin=USER_AGENTS)
        lines = call(data, *command, "--format", "ndjson", stdin=USER_AGENTS).out
        assert lines.endswith("\n")
        assert result(piped) == [json.loads(line) for line in lines.splitlines()]
        assert len(result(piped)) >= 2
        assert call(data, *command, stdin=USER_AGENTS) == piped
        assert "┃" in call(data, *command, "--format", "table", stdin=USER_AGENTS).out


def test_no_rows_are_an_empty_array_or_no_lines(data: Path) -> None:
    for command in (["sql", "SELECT 1 WHERE false"], ["classify"], ["recover"], ["files", "hits"]):
        assert call(data, *command, "--format", "json").out == "[]\n"
        assert call(data, *command, "--format", "ndjson").out == ""


def test_array_has_one_line_per_row(data: Path) -> None:
    assert call(data, "sql", "SELECT 1 AS n UNION ALL SELECT 2", "--format", "json").out == '[{"n":1},\n{"n":2}]\n'


def test_classification_of_one_user_agent_is_an_object(data: Path) -> None:
    document = call(data, "classify", "GPTBot/1.3", "--format", "json")
    assert document == call(data, "classify", "GPTBot/1.3", "--format", "ndjson")
    assert result(document)["agent"] == "GPTBot"


@pytest.mark.long
def test_row_is_printed_before_the_next_one_is_read() -> None:
    command = [COMMAND, "classify", "--format", "json"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as classify:
        assert classify.stdin is not None
        assert classify.stdout is not None
        classify.stdin.write(b"GPTBot/1.3\n")
        classify.stdin.flush()
        assert classify.stdout.read(2) == b"[{"
        classify.stdin.close()
        rest = classify.stdout.read()
    assert json.loads(b"{" + rest.removesuffix(b"]\n"))["agent"] == "GPTBot"


def test_query_that_fails_at_its_first_row_prints_nothing(data: Path) -> None:
    failed = call(data, "sql", "SELECT error('no')", "--format", "json")
    assert (failed.status, failed.out) == (1, "")
