"""Reclassification of stored hits while the service accepts posts and answers exports, each with exact numbers."""

import json
import os
import pty
import re
import subprocess
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from ingest.classification.classifier import RULESET
from tests.processes.reading import table
from tests.processes.running import COMMAND, PROJECT, Running, new_key
from tests.processes.waiting import until
from warehouse.hotlog import batches
from warehouse.schema import HOT

GPTBOT, CURL = "GPTBot/1.3", "curl/8.5"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
FIRST = datetime(2025, 2, 25, 23, 59, 59, 999_999, tzinfo=UTC)
DAYS = 8


def old(day: int, path: str, traffic: str, user_agent: str, **columns: Any) -> dict[str, Any]:
    """Return a hit as an older version of the rules stored it."""
    ts = FIRST + timedelta(days=day)
    defaults = {"project_id": PROJECT, "traffic": traffic, "rule": "old", "ruleset": "old", "source": "server"}
    return {**dict.fromkeys(HOT.names), **defaults, "ts": ts, "received_at": ts, "path": path, **columns} | {
        "user_agent": user_agent
    }


ROWS = [
    row
    for day in range(DAYS)
    for row in (
        *[old(day, f"/{number % 5}", "human", GPTBOT) for number in range(40)],
        *[old(day, "/0", "ai", FIREFOX, agent="GPTBot", operator="OpenAI", purpose="data") for _ in range(15)],
        *[old(day, "/only-bots", "bot", GPTBOT) for _ in range(3)],
        *[old(day, "/only-curl", "ai", CURL, agent="curl") for _ in range(2)],
    )
]


def store(running: Running) -> None:
    """Store rows in several batches, as a service with older rules did."""
    with closing(batches.connect(running.data / "hot.sqlite")) as hot:
        for first in range(0, len(ROWS), 50):
            batches.append(hot, pa.RecordBatch.from_pylist(ROWS[first : first + 50], HOT), 0)


def output(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def numbers(running: Running, query: str = "dateTo=2025-04-01") -> tuple[int, int]:
    totals = running.get(query)["totals"]
    assert totals["total"] == totals["human"] + totals["ai"]
    return totals["human"], totals["ai"]


@pytest.mark.long
def test_dry_run_reports_the_moves_and_changes_nothing(start: Callable[..., Running]) -> None:
    running = start()
    store(running)
    dry = output(running.run("reclassify", "--dry-run"))
    assert (dry["dry_run"], dry["ruleset"], dry["days"], dry["hits"]) == (True, RULESET, DAYS, len(ROWS))
    assert (dry["user_agents"], dry["moves"]["hits"], dry["moves"]["paths"]) == (3, 60 * DAYS, 7)
    moves = {(m["old_traffic"], m["new_traffic"]): (m["hits"], m["paths"]) for m in dry["moves"]["by_rule"]}
    assert moves == {
        ("human", "ai"): (40 * DAYS, 5),
        ("ai", "human"): (15 * DAYS, 1),
        ("bot", "ai"): (3 * DAYS, 1),
        ("ai", "bot"): (2 * DAYS, 1),
    }
    changes = {each["traffic"]: each["hits"] for each in dry["moves"]["by_traffic"]}
    assert changes == {"human": -25 * DAYS, "ai": 26 * DAYS, "bot": -1 * DAYS}
    assert numbers(running) == (40 * DAYS, 17 * DAYS)
    assert output(running.run("reclassify"))["moves"] == dry["moves"]
    assert numbers(running) == (15 * DAYS, 43 * DAYS)


def test_exports_are_exact_while_stored_hits_are_reclassified(start: Callable[..., Running]) -> None:
    running = start(processes=2, READERSHIP_LOAD_EVERY_S="1")
    store(running)
    assert numbers(running) == (40 * DAYS, 17 * DAYS)
    posted, ended = Counter[str](), threading.Event()

    def post() -> None:
        """Post a hit of today and a hit of a day that is being rewritten; both are classified by the current rules."""
        hit = {"path": "/new", "userAgent": GPTBOT}
        late = {"path": "/late", "userAgent": GPTBOT, "timestamp": (FIRST + timedelta(days=3)).isoformat()}
        with httpx.Client(headers=running.auth, timeout=60) as client:
            while not ended.is_set():
                posted["sent"] += 1
                assert client.post(running.hits, json=[hit, late]).json()["accepted"] == 2
                posted["stored"] += 1

    def export() -> set[tuple[int, int]]:
        """Check that each day has either the old or the new counts, plus the hits posted meanwhile."""
        seen = set()
        while not ended.is_set():
            at_least = posted["stored"]
            human, ai = numbers(running, "")
            at_most = posted["sent"]
            days, rest = divmod(40 * DAYS - human, 25)
            assert rest == 0
            assert 2 * at_least <= ai - 17 * DAYS - 26 * days <= 2 * at_most
            seen.add((human, days))
        return seen

    with ThreadPoolExecutor(3) as pool:
        working = [pool.submit(post), pool.submit(export), pool.submit(export)]
        until(lambda: posted["stored"] > 5)
        try:
            done = output(running.run("reclassify"))
            until(lambda: posted["stored"] > 20)
        finally:
            ended.set()
        assert all(each.result() is None or len(each.result()) > 1 for each in working)
    assert (done["dry_run"], done["days"], done["moves"]["hits"]) == (False, DAYS, 60 * DAYS)
    assert posted["sent"] == posted["stored"]
    assert numbers(running, "") == (15 * DAYS, 43 * DAYS + 2 * posted["stored"])
    again = output(running.run("reclassify"))
    assert (again["days"], again["moves"]["hits"]) == (0, 0)
    assert running.run("doctor").returncode == 0
    assert running.stop() == 0
    stored = table(running.data, "hits").select(["user_agent", "traffic", "ruleset", "agent"]).to_pylist()
    assert Counter((row["user_agent"], row["traffic"], row["ruleset"], row["agent"]) for row in stored) == {
        (GPTBOT, "ai", RULESET, "GPTBot"): 43 * DAYS + 2 * posted["stored"],
        (FIREFOX, "human", RULESET, None): 15 * DAYS,
        (CURL, "bot", RULESET, "curl"): 2 * DAYS,
    }


@pytest.mark.long
def test_deletion_of_a_project_deletes_its_event_ids_and_ledger(start: Callable[..., Running]) -> None:
    running = start()
    assert (
        running.post([{"path": "/of-the-project", "eventId": "e"}], **{"Idempotency-Key": "a-key"}).status_code == 202
    )
    files = [running.data / "hot.sqlite", running.data / "hot.sqlite-wal"]
    assert all(any(word in file.read_bytes() for file in files) for word in (b"/of-the-project", b"a-key"))
    assert output(running.run("project", "delete", PROJECT, "--yes"))["hits"] == 1
    assert not any(word in file.read_bytes() for file in files for word in (b"/of-the-project", b"a-key"))
    with closing(batches.connect(running.data / "hot.sqlite")) as hot:
        tables = [name for (name,) in hot.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = {name: hot.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables}
    of_no_project = {"node", "sqlite_sequence", "synced_tables", "loads", "refusals"}  # the last has its internal id
    assert {name for name, count in rows.items() if count} <= of_no_project


@pytest.mark.long
def test_reclassify_on_a_terminal_shows_tables_and_what_to_do_next(tmp_path: Path) -> None:
    stopped = Running(tmp_path / "data")
    new_key(stopped.data)

    def printed() -> str:
        ours, theirs = pty.openpty()
        environ = {**os.environ, "TERM": "xterm", "COLUMNS": "160"}
        command = [COMMAND, "--data", stopped.data, "reclassify", "--dry-run"]
        subprocess.run(command, stdout=theirs, env=environ, timeout=60, check=True)
        os.close(theirs)
        text = re.sub(r"\x1b\[[0-9;]*m", "", os.read(ours, 65_536).decode())
        os.close(ours)
        return text

    assert "all hits have the current rules" in printed()
    store(stopped)
    text = printed()
    for shown in ("human old", "ai ai:GPTBot", "320", f"{26 * DAYS:+} ai", "next: readership reclassify"):
        assert shown in text
