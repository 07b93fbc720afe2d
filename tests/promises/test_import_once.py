"""An import that is killed and repeated counts each line once, with and without a running service."""

import csv
import gzip
import io
import json
import random
import re
import signal
import sqlite3
import subprocess
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from ingest.hotlog import ledger_store
from tests.processes import forked
from tests.processes.reading import hits
from tests.processes.running import PROJECT, READY_S, Running, new_key, readership
from tests.processes.waiting import until
from tests.rounds import rounds, seeded
from warehouse.hotlog import batches

KILLS = max(4, rounds(20))
KILLS_BESIDE_A_SERVICE = max(2, rounds(8))
LINES, ROTATED = 190_000, 16
"""Number of lines and of rotated logs, which alternate between 1,000 lines, for the hot log, and 8,000, staged."""
FEW_LINES, FEW_ROTATED = 27_000, 4
"""Numbers of lines and of rotated logs with one kill."""
AGENTS = (
    "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Mozilla/5.0 (compatible; GPTBot/1.3; +https://openai.com/gptbot)",
    "an \\\\x22odd\\\\x22 reader",
)
KILLED_AT_SECOND_CHUNK = """
import os, signal, sqlite3, sys
from contextlib import suppress

chunks, opening = 0, []

def on_statement(statement):
    global chunks
    chunks += statement.startswith("INSERT INTO read_logs")
    if chunks == 2 and statement == "COMMIT":
        os.kill(os.getpid(), signal.SIGKILL)

def on_event(name, arguments):
    while opening:
        with suppress(sqlite3.ProgrammingError):  # closed already
            opening.pop().set_trace_callback(on_statement)
    if name == "sqlite3.connect/handle":
        opening.extend(arguments)

sys.addaudithook(on_event)
"""
"""Source of an import that has stored one chunk of a log, and is killed before the commit of the next one."""
SEEN = re.compile(rb'"GET (/[a-z0-9]+) HTTP/1\.1" (?:200|304) ', re.MULTILINE)
"""Pattern of a page view in these logs, independent of the tested parser."""


def written(folder: Path, chance: random.Random, count: int = LINES, rotated: int = ROTATED) -> list[Path]:
    """Write rotated logs and a copy of the oldest. Every third one is compressed; the newest has several chunks."""
    lines = []
    for number in range(count):
        target = f"/p{chance.randrange(500)}" if number % 10 else "/style.css"
        status = chance.choice((200, 200, 200, 304, 404))
        time = f"{1 + number % 28:02}/Sep/2026:{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02} +0000"
        agent = AGENTS[number % 3 if number % 50 == 0 else number % 2]
        noise = "x" * 160
        lines.append(
            f'192.0.2.{number % 250} - - [{time}] "GET {target} HTTP/1.1" {status} {number} "-" "{agent}" "{noise}"\n'
        )
    files, first = [], 0
    for number in range(rotated, 0, -1):
        end = first + (8_000 if number % 2 else 1_000)
        content = "".join(lines[first:end]).encode()
        files.append(folder / (f"a.log.{number}.gz" if number % 3 == 0 else f"a.log.{number}"))
        files[-1].write_bytes(gzip.compress(content, 1) if number % 3 == 0 else content)
        first = end
    files += [folder / "a.log", folder / "again.log"]
    files[-2].write_bytes("".join(lines[first:]).encode())
    files[-1].write_bytes(content_of(files[0]))
    return files


def content_of(file: Path) -> bytes:
    return gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()


def expected(files: list[Path]) -> Counter[str]:
    views: Counter[str] = Counter()
    for file in files[:-1]:
        views.update(path.decode() for path in SEEN.findall(content_of(file)))
    return views


def killed_until_done(data: Path, files: list[Path], chance: random.Random, kills: int) -> None:
    """Repeat one import, kill it this many times, then let it end.

    Half of the kills are before the commit of a chunk. The others are at a random moment after the import has made
    progress or, once all lines are read, has started.
    """
    command = ["--data", str(data), "import", PROJECT, *map(str, files)]
    whole = sum(len(content_of(file)) for file in files[:-1])
    with closing(batches.connect(data / "hot.sqlite")) as hot:
        ledger_store.create(hot)
        for _ in range(kills - kills // 2):
            before = known(hot)
            process = forked.start(KILLED_AT_SECOND_CHUNK + forked.PROGRAM, command)
            assert process.wait(READY_S) == -signal.SIGKILL
            assert before < known(hot) < whole
        for _ in range(kills // 2):
            before = known(hot)
            process = forked.start(forked.PROGRAM, command)
            if before < whole:
                until(lambda: known(hot) > before or process.poll() is not None)  # noqa: B023  # asked now
            try:
                process.wait(chance.uniform(0, 0.05) if before < whole else chance.uniform(0.3, 0.9))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            else:
                assert process.returncode == 0
    ended = readership(*command)
    assert ended.returncode == 0, ended.stderr
    again = json.loads(readership(*command).stdout)
    assert (again["lines"], again["page_views"]) == (0, 0)


def known(hot: sqlite3.Connection) -> int:
    """Return the number of bytes of logs in the ledger."""
    return int(hot.execute("SELECT coalesce(sum(bytes), 0) FROM read_logs").fetchone()[0])


def exported(running: Running) -> Counter[str]:
    """Return the exported views by path. These logs contain no bots."""
    answer = httpx.get(running.views, headers={**running.auth, "Accept": "text/csv"}, timeout=60)
    return Counter({row["path"]: int(row["total"]) for row in csv.DictReader(io.StringIO(answer.text))})


@pytest.mark.parametrize(
    ("kills", "lines", "rotated"),
    [(1, FEW_LINES, FEW_ROTATED), pytest.param(KILLS, LINES, ROTATED, marks=pytest.mark.night)],
)
def test_kills_lose_and_repeat_no_line(tmp_path: Path, kills: int, lines: int, rotated: int) -> None:
    chance = seeded(20260915)
    data = tmp_path / "data"
    new_key(data)
    files = written(tmp_path, chance, lines, rotated)
    killed_until_done(data, files, chance, kills)
    running = Running(data).start()
    seen = exported(running)
    assert running.stop() == 0
    assert hits(data) == seen == expected(files)
    assert readership("--data", str(data), "doctor").returncode == 0


@pytest.mark.night
def test_kills_beside_a_service_that_takes_posts_lose_and_repeat_nothing(
    start: Callable[..., Running], tmp_path: Path
) -> None:
    chance = seeded(20260916)
    running = start(READERSHIP_LOAD_EVERY_S="1")
    files = written(tmp_path, chance)
    stopping = threading.Event()
    posted: Counter[str] = Counter()

    def post() -> None:
        with httpx.Client(headers=running.auth, timeout=60) as client:
            while not stopping.wait(0.01):
                hit = {"path": f"/posted{posted.total() % 9}", "userAgent": AGENTS[1]}
                assert client.post(running.hits, json=hit).status_code == 202
                posted[hit["path"]] += 1

    sender = threading.Thread(target=post)
    sender.start()
    try:
        killed_until_done(running.data, files, chance, KILLS_BESIDE_A_SERVICE)
    finally:
        stopping.set()
        sender.join()
    seen = exported(running)
    assert running.stop() == 0
    assert hits(running.data) == seen == expected(files) + posted
    assert running.run("doctor").returncode == 0
