"""The questions and snippets of docs/analysis.md, run on the sample data and compared with the page."""

import csv
import io
import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable

import warehouse
from tests.processes.running import readership
from tests.warehouse.site import NOON, ROOT, view
from warehouse.hotlog import batches
from warehouse.schema import HOT

PAGE = (ROOT / "docs" / "analysis.md").read_text(encoding="utf-8")
LOG = ROOT / "sample_data" / "access.log"
EXPECTED = json.loads((ROOT / "sample_data" / "expected_views.json").read_text())
TABLED = r"```sql\n(.*?)```\n\n((?:\|[^\n]*\n)+)"
QUESTIONS = re.findall(rf"### \d+\. (.+?)\n.*?{TABLED}", PAGE, re.DOTALL)
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
WITHOUT_TEST_PACKAGES = """
import json, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"pandas", "polars"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
for snippet in json.load(sys.stdin):
    exec(snippet, {})
"""
"""Program that runs the snippets of its standard input without the packages that only the tests install."""
Cells = list[list[str]]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a new data folder with the sample log, imported by the commands of the page."""
    folder = tmp_path_factory.mktemp("analysis") / "data"
    assert _import(folder, "demo") == EXPECTED["page_views"]
    return folder


def _import(folder: Path, project: str, log: Path = LOG) -> int:
    """Import a log into a new project, and return the number of its page views."""
    _run(folder, "project", "create", project)
    return int(json.loads(_run(folder, "import", project, str(log)))["page_views"])


def _run(folder: Path, *arguments: str) -> str:
    ran = readership("--data", str(folder), *arguments)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def _shown(table: str) -> Cells:
    lines = [[cell.strip() for cell in line[1:-1].split("|")] for line in table.splitlines()]
    return [lines[0], *lines[2:]]


def _answer(title: str) -> list[dict[str, str]]:
    """Return the answer of the page to a question, one dictionary per row."""
    [table] = [table for heading, _, table in QUESTIONS if title in heading]
    names, *rows = _shown(table)
    return [dict(zip(names, row, strict=True)) for row in rows]


def test_each_of_eleven_queries_returns_the_table_on_the_page(data: Path) -> None:
    assert len(QUESTIONS) == PAGE.count("```sql") == 11
    for _, sql, table in QUESTIONS:
        printed = _run(data, "sql", sql, "--format", "csv")
        assert list(csv.reader(io.StringIO(printed))) == _shown(table), sql


def test_views_and_missing_pages_are_those_of_the_generated_sample() -> None:
    missing = Counter[str]()
    for row in EXPECTED["ai_errors"]:
        missing[row["path"]] += row["requests"] if row["status"] in {404, 410} else 0
    assert {row["path"]: int(row["asked"]) for row in _answer("Which missing pages does AI ask for")} == +missing
    views = {row["traffic"]: int(row["views"]) for row in _answer("Who reads us")}
    assert views == {"human": EXPECTED["totals"]["human"], "ai": EXPECTED["totals"]["ai"], "bot": EXPECTED["bots"]}
    alone = {row["path"]: row["ai"] for row in EXPECTED["views"] if row["human"] == 0}
    assert {row["path"]: int(row["ai"]) for row in _answer("only AI")} == alone


def test_views_by_operator_are_those_of_the_agents_in_the_sample() -> None:
    agents = tomllib.loads((ROOT / "ingest" / "classification" / "agents.toml").read_text(encoding="utf-8"))["agent"]
    operators, purposes = Counter[str](), Counter[tuple[str, str]]()
    for agent in agents:
        views = EXPECTED["by_agent"].get(agent["name"], 0)
        operators[agent["operator"]] += views
        purposes[agent["operator"], agent["purpose"]] += views
    answer = _answer("Whose AI")
    assert {row["operator"]: int(row["views"]) for row in answer} == +operators
    for purpose in ("training", "search", "assistant", "agent"):
        assert all(int(row[purpose]) == purposes[row["operator"], purpose] for row in answer)


def test_weeks_add_up_the_days_of_the_sample() -> None:
    weeks: dict[str, Counter[str]] = {}
    for text, views in EXPECTED["by_day"].items():
        day = date.fromisoformat(text)
        week = weeks.setdefault(str(day - timedelta(days=day.weekday())), Counter())
        week.update(days=1, **views)
    answer = _answer("share of AI")
    assert {
        row["week"]: Counter(days=int(row["days"]), human=int(row["human"]), ai=int(row["ai"])) for row in answer
    } == weeks


def test_views_of_the_phone_whose_name_ends_in_bot_are_those_of_the_log() -> None:
    lines = [
        line
        for line in LOG.read_bytes().split(b"\n")
        if b"CUBOT" in line and re.search(rb'"GET \S+ \S+" (2..|304) ', line)
    ]
    pages = [line for line in lines if not re.search(rb'"GET \S+\.(css|js|png|jpg|svg|ico)[? ]', line, re.IGNORECASE)]
    [phone] = [row for row in _answer("counted as a person") if "CUBOT" in row["user_agent"]]
    assert int(phone["views"]) == len(pages)


def test_visits_from_perplexity_are_those_of_the_log() -> None:
    """All referrals from Perplexity in the sample are page views in browsers."""
    answered = re.compile(rb'"GET [^"]+" (2\d\d|304) (\d+|-) "https://www\.perplexity\.ai/')
    sent = sum(1 for line in LOG.read_bytes().split(b"\n") if answered.search(line))
    [perplexity] = [row for row in _answer("send back") if row["operator"] == "Perplexity"]
    assert int(perplexity["visits"]) == sent


RESULTS = """
import json, sys

ran = []
for snippet in json.load(sys.stdin):
    ran.append({})
    exec(snippet, ran[-1])
notebook, own_data, of_polars, of_pandas, bare = ran
results = {
    "notebook traffic": notebook["shares"].fetchall(),
    "bare traffic": list(bare["traffic"]),
    "notebook agents": notebook["agents"]["name"].to_pylist(),
    "bare agents": bare["agents"]["name"].to_pylist(),
    "agents of Polars": list(of_polars["ai"].iter_rows()),
    "AI views of pandas": int((of_pandas["day"]["traffic"] == "ai").sum()),
    "comment of pandas": of_pandas["comments"]["path"],
    "views by team": list(own_data["read"]),
}
notebook["connection"].close()
print(json.dumps(results))
"""
"""Program that runs the snippets of its standard input, and prints their variables."""


@pytest.mark.long
def test_snippets_return_the_counts_of_the_sample(data: Path) -> None:
    """They run in a process of its own: pandas is in a folder beside the environment, see the Makefile."""
    printed = _run_snippets(RESULTS, SNIPPETS, data.parent, ROOT, Path(sys.prefix, "notebook"))
    results = json.loads(printed.splitlines()[-1])  # the snippets print too
    traffic = {"human": EXPECTED["totals"]["human"], "ai": EXPECTED["totals"]["ai"], "bot": EXPECTED["bots"]}
    assert dict(results["notebook traffic"]) == dict(results["bare traffic"]) == traffic
    assert set(EXPECTED["by_agent"]) <= set(results["notebook agents"]) == set(results["bare agents"])
    assert dict(results["agents of Polars"]) == EXPECTED["by_agent"]
    assert results["AI views of pandas"] == EXPECTED["by_day"]["2026-09-10"]["ai"]
    assert results["comment of pandas"] == "normalised path: no query, fragment or trailing slash"
    views = {row["path"]: row for row in EXPECTED["views"]}
    for team, kind, count in results["views by team"]:
        path = {"server": "/docs/api", "tools": "/docs/cli"}[team]
        assert count == views[path][kind] if kind != "bot" else count > 0


def _run_snippets(program: str, snippets: list[str], folder: Path, *packages: Path) -> str:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, packages))}
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, input=json.dumps(snippets), cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
def test_snippets_run_without_the_packages_that_only_tests_install(data: Path) -> None:
    """Only the sections on pandas and Polars need packages that `make run` does not install."""
    bare = [each for each in SNIPPETS if "polars" not in each and "to_pandas" not in each]
    assert len(bare) >= 3
    _run_snippets(WITHOUT_TEST_PACKAGES, bare, data.parent, ROOT)


def test_each_way_of_reading_returns_the_rows_that_the_page_claims(tmp_path: Path) -> None:
    """Compact two imports, so that each day has two replaced files, then post a hit that waits in the hot log."""
    folder, log = tmp_path / "data", tmp_path / "access.log"
    log.write_bytes(b"".join(LOG.read_bytes().splitlines(keepends=True)[:500]))
    live = _import(folder, "demo", log) + _import(folder, "other", log)
    _run(folder, "compact")
    with closing(batches.connect(folder / "hot.sqlite")) as hot:
        batches.append(hot, pa.RecordBatch.from_pylist([view()], HOT), NOON.timestamp())
    table = DeltaTable(str(folder / "lake" / "hits"))
    with warehouse.connect(folder) as connection:
        assert connection.sql("SELECT count(*) FROM hits").fetchall() == [(live + 1,)]
    assert table.to_pyarrow_table().num_rows == live
    assert pl.scan_delta(str(folder / "lake" / "hits")).select(pl.len()).collect().item() == live
    assert duckdb.read_parquet(table.file_uris(), hive_partitioning=True).shape[0] == live
    assert duckdb.read_parquet(f"{folder}/lake/hits/date=*/*.parquet", hive_partitioning=True).shape[0] == 2 * live
