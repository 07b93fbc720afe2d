"""A data folder and a log whose paths have special characters can be used by a service and by commands, also after a
move, and no file of another folder is read, which the path matches as a pattern.
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.processes.running import PROJECT, Running
from tests.stores.postgresql import new_database
from tests.warehouse.site import ROOT

NAME = "a * folder? of 'Zoë' & \"co\"; #1 {a,b} $HOME"
MATCHED = NAME.replace("*", "x").replace("?", "y")
"""Name of another folder, which NAME matches as a pattern."""
GPTBOT = "Mozilla/5.0 (compatible; GPTBot/1.2)"
EXPECTED = json.loads((ROOT / "sample_data" / "expected_views.json").read_text())


def output(running: Running, *arguments: str) -> Any:
    done = running.run(*arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@contextmanager
def ended(running: Running) -> Iterator[None]:
    """Kill the service at the end of the block if it still runs, after an error."""
    try:
        yield
    finally:
        if running.process is not None and running.process.poll() is None:
            running.kill()


def check(running: Running, log: Path, posted: int) -> None:
    """Post a hit, run commands beside the service, and stop it. `posted` hits were posted, this one included."""
    assert running.post({"path": "/posted", "userAgent": GPTBOT}).json()["accepted"] == 1
    imported = output(running, "import", PROJECT, str(log))
    assert imported["lines"] + imported["known"] == len(log.read_bytes().splitlines())
    output(running, "compact")
    output(running, "rebuild")
    count = EXPECTED["page_views"] + posted
    assert output(running, "sql", "SELECT count(*) AS hits FROM hits") == [{"hits": count}]
    assert output(running, "sql", "SELECT sum(views)::INT AS views FROM daily_views") == [{"views": count}]
    assert [each["fault"] for each in output(running, "doctor") if each["fault"]] == []
    assert running.get("path=/posted")["totals"] == {"human": 0, "ai": posted, "total": posted}
    assert 'readership_hits_total{outcome="accepted",source="server"} 1.0' in httpx.get(f"{running.url}/metrics").text
    assert running.stop() == 0


@pytest.mark.night
def test_service_commands_and_move(tmp_path: Path, postgresql: str) -> None:
    log = tmp_path / NAME / f"{NAME}.log"
    log.parent.mkdir()
    shutil.copyfile(ROOT / "sample_data" / "access.log", log)
    local = Running(log.parent / "the data").start()
    with ended(local):
        check(local, log, posted=1)
    shutil.copytree(log.parent, tmp_path / MATCHED)
    url = new_database(postgresql)
    output(local, "move", "--to", url)
    moved = Running(local.data, environ={"READERSHIP_DATABASE_URL": url}, key=local.key).start()
    with ended(moved):
        check(moved, log, posted=2)
    assert output(moved, "project", "delete", PROJECT, "--yes")["hits"] == EXPECTED["page_views"] + 2
    assert output(moved, "sql", "SELECT count(*) AS hits FROM hits") == [{"hits": 0}]
    assert output(Running(tmp_path / MATCHED / "the data"), "sql", "SELECT count(*) AS hits FROM hits") == [
        {"hits": EXPECTED["page_views"] + 1}
    ]
