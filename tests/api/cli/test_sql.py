"""`sql` and `classify` print results, and a notebook reads the data beside a running service."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import warehouse
from api.cli.main import main
from ingest.classification.agents import rows as known_agents
from tests.api.cli.console import FIREFOX, call, result
from tests.processes.running import COMMAND, Running, memory_unlimited, new_key, readership
from warehouse.errors import AgentsDamaged
from warehouse.schema import HITS

PEAK = (
    "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)"
)
"""Program that runs a command and prints its peak memory in KiB. A direct child of pytest would start with the memory
of pytest."""
WIDE = "SELECT * FROM hits WHERE path = '/wide'"


@pytest.fixture(scope="module")
def filled(service: Running) -> Running:
    """Return a service with one hit on `/wide`."""
    assert service.post({"path": "/wide", "userAgent": "GPTBot/1.3", "eventId": "[red]w"}).status_code == 202
    return service


def printed(service: Running, question: str, form: str = "table") -> str:
    done = call(service.data, "sql", question, "--format", form)
    assert done.status == 0, done.err
    return done.out


def test_notebook_sees_each_acknowledged_hit_of_a_running_service(service: Running) -> None:
    sent = [
        {"path": "/notebook", "userAgent": agent}
        for agent in ("GPTBot/1.3", "Mozilla/5.0 (X11; Linux x86_64; rv:155.0) Gecko/20100101 Firefox/155.0")
    ]
    assert service.post(sent).status_code == 202
    with warehouse.connect(service.data) as connection:
        traffic = connection.sql("SELECT traffic FROM hits WHERE path = '/notebook' ORDER BY traffic").fetchall()
        assert traffic == [("ai",), ("human",)]
        assert service.post(sent).status_code == 202
        assert connection.sql("SELECT count(*) FROM hits WHERE path = '/notebook'").fetchall() == [(2,)]
    with warehouse.connect(service.data) as later:
        assert later.sql("SELECT sum(views) FROM daily_views WHERE path = '/notebook'").fetchall() == [(4,)]


@pytest.mark.long
def test_damaged_file_of_agents_is_written_again(tmp_path: Path) -> None:
    new_key(tmp_path)
    file = tmp_path / "lake" / "agents.parquet"
    for damaged in (b"", file.read_bytes()[:100]):
        file.write_bytes(damaged)
        with pytest.raises(AgentsDamaged, match=r"agents\.parquet cannot be read; readership sql writes it again"):
            warehouse.connect(tmp_path)
        assert result(call(tmp_path, "sql", "FROM agents", "--format", "json")) == known_agents()


def test_agents_are_those_of_the_classifier(service: Running) -> None:
    assert json.loads(printed(service, "FROM agents", "json")) == known_agents()
    assert pq.read_table(service.data / "lake" / "agents.parquet").to_pylist() == known_agents()


def test_table_is_as_wide_as_its_cells_and_shows_nulls(service: Running) -> None:
    table = printed(
        service, "SELECT 2026 AS year, 'a' AS text, '' AS nothing, NULL AS missing, true AS yes, [1] AS list"
    )
    assert [line for line in table.splitlines() if "│" in line] == ["│ 2026 │ a    │         │ NULL    │ True │ [1]  │"]


def test_result_too_wide_for_the_terminal_has_one_line_per_value(filled: Running) -> None:
    lines = printed(filled, WIDE).splitlines()
    assert max(map(len, lines)) <= 100
    pairs = [line.strip("│").split("│") for line in lines if line.startswith("│")]
    shown = {name.strip(): value.strip() for name, value in pairs}
    assert shown["path"] == "/wide"
    assert shown["agent"] == "GPTBot"
    assert shown["referrer"] == "NULL"
    assert shown["event_id"] == "[red]w"
    assert shown.keys() == set(HITS.names)


@pytest.mark.long
def test_long_cell_is_wrapped(service: Running) -> None:
    question = "SELECT repeat('abcdefgh', 30) AS long, 1 AS short"
    table = service.run("sql", question, "--format", "table", env={"COLUMNS": "60", "PATH": ""}).stdout
    assert max(map(len, table.splitlines())) <= 60
    assert "".join(line.split("│")[1].strip() for line in table.splitlines() if "│" in line) == "abcdefgh" * 30


def test_control_characters_of_a_value_are_replaced(service: Running) -> None:
    table = printed(service, "SELECT chr(27) || '[2J' || chr(155) || chr(13) || chr(127) AS text")
    assert "│ ␛[2J\ufffd␍\ufffd │" in table


@pytest.mark.long
def test_result_without_rows_is_printed_as_no_rows(service: Running) -> None:
    assert printed(service, "SELECT * FROM hits WHERE false") == "no rows\n"
    assert printed(service, "SELECT * FROM agents WHERE false", "csv") == '"name","operator","purpose","pattern"\n'


@pytest.mark.long
def test_csv_and_json_distinguish_null_from_an_empty_string(service: Running) -> None:
    question = "SELECT '' AS e, NULL AS n, [1, 2] AS l, to_days(2) + to_seconds(3661) AS i, 2.50::DECIMAL(9, 2) AS d"
    assert printed(service, question, "csv").splitlines()[1] == '"",,"[1,2]","2 days 1:01:01",2.50'
    row = '{"e":"","n":null,"l":[1,2],"i":"2 days 1:01:01","d":2.50}'
    assert printed(service, question, "json") == f"[{row}]\n"
    assert printed(service, question, "ndjson") == f"{row}\n"


def test_parquet_has_the_types_of_the_result(service: Running, tmp_path: Path) -> None:
    file = tmp_path / "agents.parquet"
    command = ["--data", str(service.data), "sql", "SELECT name, 1::BIGINT AS n FROM agents", "--format", "parquet"]
    with memory_unlimited():
        file.write_bytes(CliRunner().invoke(main, command).stdout_bytes)
    assert str(pq.read_schema(file).field("n").type) == "int64"
    assert pq.read_metadata(file).num_rows == len(known_agents())


def peak_mb(service: Running, rows: int, form: str, answer: Path) -> int:
    """Return the peak memory of the command that writes so many rows of 1,920 characters, in MB."""
    question = f"SELECT i, repeat(md5(i::VARCHAR), 60) AS text FROM range({rows}) AS t (i)"
    command = [sys.executable, "-c", PEAK, COMMAND, "--data", service.data, "sql", question, "--format", form]
    with answer.open("wb") as output:
        asked = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, text=True, check=True)
    return int(asked.stderr) // 1024


@pytest.fixture(scope="module")
def one_row_mb(service: Running, tmp_path_factory: pytest.TempPathFactory) -> int:
    """Return the peak memory of the command that writes one row, which is the same in each format."""
    return peak_mb(service, 1, "json", tmp_path_factory.mktemp("one") / "answer")


@pytest.mark.night
@pytest.mark.parametrize("form", ["json", "ndjson", "csv", "parquet"])
def test_long_result_is_written_in_batches(service: Running, one_row_mb: int, tmp_path: Path, form: str) -> None:
    """Write 384 MB of text with at most 250 MB more memory than one row needs."""
    assert peak_mb(service, 200_000, form, tmp_path / "answer") - one_row_mb < 250


@pytest.mark.long
def test_parquet_is_not_written_to_a_terminal(service: Running) -> None:
    terminal, end = os.openpty()
    command = [COMMAND, "--data", service.data, "sql", "SELECT 1", "--format", "parquet"]
    refused = subprocess.run(command, stdout=end, stderr=subprocess.PIPE, text=True, check=False)
    os.close(end)
    os.close(terminal)
    assert refused.returncode == 2
    assert "send it to a file" in refused.stderr


def test_time_limit_that_no_timer_accepts_is_refused(tmp_path: Path) -> None:
    for timeout in ("1e12", "nan", "-1", "86401"):
        refused = call(tmp_path, "sql", "SELECT 1", "--timeout", timeout)
        assert refused.status == 2
        assert "Invalid value for '--timeout'" in refused.err


def test_command_in_the_process_of_the_tests_leaves_its_memory_unlimited(tmp_path: Path) -> None:
    """Check the check: Chromium inherits a limit of the tests, and then each of its renderers crashes."""
    new_key(tmp_path)
    before = resource.getrlimit(resource.RLIMIT_DATA)
    assert result(call(tmp_path, "sql", "SELECT 1 AS n", "--format", "json")) == [{"n": 1}]
    assert readership("--data", str(tmp_path), "sql", "SELECT 1").returncode == 0
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_type_that_parquet_lacks_is_an_error_that_names_the_cast(service: Running) -> None:
    refused = service.run("sql", "SELECT to_days(1) AS apart", "--format", "parquet")
    assert refused.returncode == 1
    assert "parquet cannot represent the result" in refused.stderr
    assert "CAST the column AS VARCHAR" in refused.stderr


@pytest.mark.long
def test_time_outside_the_years_1_to_9999_is_refused_in_one_line(service: Running) -> None:
    infinite = "'infinity'::TIMESTAMP"
    of_types = ("'-infinity'::TIMESTAMPTZ", "'infinity'::TIMESTAMP_S", "DATE '29000-01-01'", "['infinity'::DATE]")
    forms = [(infinite, form) for form in ("table", "csv", "json", "ndjson")]
    for time, form in forms + [(time, "csv") for time in of_types]:
        refused = service.run("sql", f"SELECT {time} AS far", "--format", form)
        assert refused.returncode == 1
        assert refused.stderr.startswith(f"Error: {form} cannot represent the result: a time in column far is outside")
        assert refused.stderr.endswith("CAST the column AS VARCHAR\n")
        assert refused.stderr.count("\n") == 1


@pytest.mark.long
def test_time_is_printed_in_nanoseconds(service: Running) -> None:
    question = "SELECT '2020-01-01 00:00:00.123456789'::TIMESTAMP_NS AS fine"
    for form in ("table", "csv", "json", "ndjson"):
        assert "2020-01-01 00:00:00.123456789" in printed(service, question, form)


@pytest.mark.long
def test_two_columns_of_one_name_are_refused_if_one_would_be_lost(service: Running) -> None:
    for form in ("json", "ndjson", "parquet"):
        refused = service.run("sql", "SELECT 1 AS a, 2 AS a", "--format", form)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "two columns are named a: " in refused.stderr
    assert printed(service, "SELECT 1 AS a, 2 AS a", "csv") == '"a","a"\n1,2\n'
    assert "│ 1 │ 2 │" in printed(service, "SELECT 1 AS a, 2 AS a")


def test_unknown_table_is_an_error_that_lists_the_views(service: Running) -> None:
    refused = service.run("sql", "FROM visits")
    assert refused.returncode == 1
    assert "visits does not exist" in refused.stderr
    assert "The views are hits, asset_loads, requests, events, errors, daily_views, agents." in refused.stderr


def test_folder_without_data_is_named_and_not_created(service: Running, tmp_path: Path) -> None:
    refused = service.run("--data", str(tmp_path / "typo"), "sql", "SELECT 1")
    assert refused.returncode == 1
    assert f"there is no data in {tmp_path / 'typo'}" in refused.stderr
    assert not (tmp_path / "typo").exists()


def test_classify_takes_an_argument_or_lines_of_standard_input(data: Path) -> None:
    gptbot = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; GPTBot/1.3; +https://openai.com/gptbot"
    one = result(call(data, "classify", gptbot))
    assert set(one) == {"userAgent", "traffic", "agent", "operator", "purpose", "rule"}
    assert (one["userAgent"], one["traffic"], one["agent"]) == (gptbot, "ai", "GPTBot")
    assert (one["operator"], one["purpose"]) == ("OpenAI", "training")
    assert one["rule"]
    lines = f"{gptbot}\n{FIREFOX}\r\n\ncurl/8.5.0".encode() + b"\n\xff\xfe"
    done = CliRunner().invoke(main, ["classify", "--format", "ndjson"], input=lines)
    assert done.exit_code == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["userAgent"] for each in rows[:4]] == [gptbot, FIREFOX, "", "curl/8.5.0"]
    assert [each["traffic"] for each in rows[:4]] == ["ai", "human", "bot", "bot"]
    assert len(rows) == 5
    assert rows[0] == one


def test_classify_takes_the_accept_header_of_the_requests(data: Path) -> None:
    one = result(call(data, "classify", "--accept", "text/markdown, */*", FIREFOX))
    assert (one["traffic"], one["agent"], one["rule"]) == ("ai", None, "ai:accept-markdown")
    one = result(call(data, "classify", "--accept", "text/markdown", "--explain", FIREFOX))
    assert one["rule"] == one["steps"][-1]["rule"] == "ai:accept-markdown"
    assert result(call(data, "classify", "--accept", "text/html", FIREFOX))["traffic"] == "human"


def test_classify_explains_the_steps_up_to_the_one_that_decided(data: Path) -> None:
    one = result(call(data, "classify", "--explain", "Mozilla/5.0 (compatible; AhrefsBot/7.0)"))
    assert one["rule"] == one["steps"][-1]["rule"] == "bot:crawler-user-agents:AhrefsBot"
    assert [step["matched"] for step in one["steps"]] == [False, False, True]
    done = call(data, "classify", "--explain", "--format", "ndjson", stdin="GPTBot/1.3\ncurl/8\n")
    assert [json.loads(line)["steps"][-1]["text"] for line in done.out.splitlines()] == ["GPTBot", "curl"]
    shown = call(data, "classify", "--explain", "--format", "table", "[red]GPTBot/1.3").out
    assert "[red]GPTBot/1.3" in shown
    assert "AI agents" in shown
    assert "ai:GPTBot" in shown
    assert "agent GPTBot" in shown
    shown = call(data, "classify", "--explain", "--format", "table", "curl", "--accept", "text/html").out
    assert "agent curl" in shown
    assert "agent" not in call(data, "classify", "--explain", "--format", "table", FIREFOX).out.split("step")[0]
