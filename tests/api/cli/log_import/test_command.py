"""`import` reads access logs, and prints what it imported."""

import gzip
import os
import pty
import re
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.cli.log_import.reading import NO_ORIGIN
from tests.api.cli.console import EXPECTED, FIREFOX, SAMPLE, Imported, all_of, call, complaint, result
from tests.processes.running import COMMAND, PROJECT, Running
from warehouse.folder import SALTS


@pytest.mark.long
def test_imported_sample_log_is_the_expected_export(imported: Imported, tmp_path: Path) -> None:
    summary = result(imported.output)
    assert summary["lines"] == EXPECTED["lines"]
    assert (summary["human"], summary["ai"]) == (EXPECTED["totals"]["human"], EXPECTED["totals"]["ai"])
    assert summary["bot"] == EXPECTED["bots"]
    assert (summary["errors"], summary["skipped"]) == (EXPECTED["errors"], EXPECTED["skipped"])
    assert summary["agents"] == EXPECTED["by_agent"]
    assert summary["page_views"] == summary["human"] + summary["ai"] + summary["bot"]
    assert (summary["dry_run"], summary["known"]) == (False, 0)
    assert summary["formats"] == {str(SAMPLE / "access.log"): "combined"}
    assert summary["lines_per_s"] == pytest.approx(summary["lines"] / summary["seconds"], rel=0.1)
    assert all("address lists" in line for line in imported.output.err.splitlines())

    service = Running(imported.copy(tmp_path), key=imported.key).start()
    with httpx.Client(headers=service.auth) as client:

        def export(query: str = "") -> Any:
            return client.get(f"{service.views}?limit=250&{query}").json()

        report = export()
        assert (report["totals"], report["views"]) == (EXPECTED["totals"], EXPECTED["views"])
        days = sorted(EXPECTED["by_day"])
        for day, end in zip(days, [*days[1:], "2026-10-01"], strict=True):
            totals = export(f"dateFrom={day}&dateTo={end}")["totals"]
            assert {name: totals[name] for name in ("human", "ai")} == EXPECTED["by_day"][day], day
    assert service.stop() == 0


def test_import_reads_gzip_standard_input_and_several_files_beside_a_service(service: Running, tmp_path: Path) -> None:
    line = f'192.0.2.1 - - [01/Mar/1999:12:00:00 +0000] "GET {{}} HTTP/1.1" 200 5 "-" "{FIREFOX}"\n'
    plain, packed = tmp_path / "access.log", tmp_path / "access.log.1.gz"
    plain.write_text(line.format("/a") + line.format("/b"))
    packed.write_bytes(gzip.compress(line.replace("12:00:00", "12:00:01").format("/a").encode()))
    stdin = line.format("/c") + line.format("/d") + "nonsense\n"
    summary = result(call(service.data, "import", PROJECT, str(plain), str(packed), "-", stdin=stdin))
    assert (summary["lines"], summary["human"], summary["skipped"]) == (6, 5, {"malformed": 1})
    totals = {row["path"]: row["total"] for row in service.get("dateFrom=1999-03-01&dateTo=1999-03-02")["views"]}
    assert totals == {"/a": 2, "/b": 1, "/c": 1, "/d": 1}


@pytest.mark.long
def test_dry_run_prints_the_result_of_an_import_and_stores_nothing(data: Path) -> None:
    file = str(SAMPLE / "access.log")
    dry = result(call(data, "import", PROJECT, file, "--dry-run"))
    assert dry["dry_run"] is True
    assert result(call(data, "sql", "SELECT count(*) AS hits FROM hits")) == [{"hits": 0}]
    assert not (data / SALTS).exists()
    done = result(call(data, "import", PROJECT, file))
    for differing in ("dry_run", "seconds", "lines_per_s"):
        del dry[differing], done[differing]
    assert done == dry
    again = result(call(data, "import", PROJECT, file))
    assert (again["lines"], again["page_views"], again["known"]) == (0, 0, EXPECTED["lines"])


def test_options_include_and_exclude_paths(data: Path, tmp_path: Path) -> None:
    line = f'192.0.2.1 - - [01/Mar/1999:12:00:00 +0000] "GET {{}} HTTP/1.1" 200 5 "-" "{FIREFOX}"\n'
    log = tmp_path / "access.log"
    log.write_text("".join(map(line.format, ["/a", "/feed.xml", "/other.xml", "/admin/a"])))
    summary = result(call(data, "import", PROJECT, str(log), "--include", "/feed.xml", "--exclude", "/admin*"))
    assert (summary["page_views"], summary["skipped"]) == (2, {"excluded": 1, "not_a_page": 1})
    log.write_text(line.format("/half") + "broken\n")
    summary = result(call(data, "import", PROJECT, str(log)))
    assert (summary["page_views"], summary["skipped"]) == (1, {"malformed": 1})


def test_import_looks_up_its_project_in_the_configured_control_database(tmp_path: Path) -> None:
    data, other, file = tmp_path / "data", tmp_path / "other", str(SAMPLE / "access.log")
    environ = {"READERSHIP_DATABASE_URL": f"sqlite:///{tmp_path / 'elsewhere.sqlite'}"}
    assert call(data, "project", "create", "here").status == 0
    assert call(other, "project", "create", "there", **environ).status == 0
    assert result(call(other, "import", "there", file, "--dry-run", **environ))["page_views"] == EXPECTED["page_views"]
    error = complaint(call(data, "import", "there", file))
    assert "no project 'there'; readership project list shows all, and readership project create there adds it" in error
    assert "there is no project 'here'" in complaint(call(other, "import", "here", file, **environ))


def test_import_of_a_missing_file_stores_nothing_of_the_other_files(data: Path, tmp_path: Path) -> None:
    """Check that nothing is stored: a corrected second command must not count a line twice."""
    many = tmp_path / "many.log"
    many.write_bytes(5 * (SAMPLE / "access.log").read_bytes())
    complaint(call(data, "import", PROJECT, str(many), str(tmp_path / "missing.log")))
    assert result(call(data, "flush"))["rows"] == 0
    assert not list((data / "lake" / "hits").glob("*/*.parquet"))


@pytest.mark.long
def test_import_on_a_terminal_shows_its_progress_and_a_table(data: Path) -> None:
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    command = [COMMAND, "--data", data, "import", PROJECT, SAMPLE / "access.log"]
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environ)
    os.close(theirs)
    text = all_of(ours)
    assert process.wait(60) == 0
    assert "lines/s" in text
    assert f"Warning: {NO_ORIGIN} {PROJECT} ORIGIN" in " ".join(text.split())
    assert re.search(rf"page views\W+{EXPECTED['page_views']:,}", text)
    assert re.search(rf"GPTBot\W+{EXPECTED['by_agent']['GPTBot']:,}", text)
