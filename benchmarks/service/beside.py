"""Time of single posts while 100 clients ask for reports, against the same posts alone. The goal is a ratio of 2.

`python -m benchmarks service.beside [FOLDER]` takes a lake of `python -m benchmarks lake`, or a temporary one of 1M
hits. Posts come from 4 connections, 40 a second, and reports have random ranges. Both clients are processes of their
own.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path

from benchmarks import lake
from benchmarks.lake import Shape
from benchmarks.measure import RUNS, Measured, ratio, record
from benchmarks.service import server
from benchmarks.service.reader import Reader
from benchmarks.single import AGENT, BODY

DEFAULT = Shape(hits=1_000_000, days=365, paths=10_000, projects=8, end=datetime.now(UTC).date())
SECONDS, WRITERS, READERS, POSTS_A_SECOND = 10, 4, 100, 40
BREAKDOWNS = ("agent", "operator", "referrerHost", "browser", "country", "channel", "path")
LEAD_S = 2.0
"""Time for which reports are asked before the first post, in seconds."""


def main(*arguments: str) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks service.beside", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    folder = parser.parse_args(arguments).folder
    alone: list[float] = []
    beside: list[float] = []
    with tempfile.TemporaryDirectory(prefix="readership-bench-") as scratch:
        generated = lake.opened(folder) if folder else lake.generate(Path(scratch) / "lake", DEFAULT)
        if not folder:
            lake.derive(generated)
        with server.running(generated.data) as running:
            for _ in range(RUNS):
                alone.append(float(_client(running, "post").communicate()[0]))
                reader = _client(running, "read", str(generated.shape.end), str(generated.shape.days))
                time.sleep(LEAD_S)
                beside.append(float(_client(running, "post").communicate()[0]))
                reader.communicate("")
    idle, busy = Measured("p99 of posts", "ms", alone), Measured("p99 of posts beside 100 reports", "ms", beside)
    record("beside", [idle, busy, ratio("p99 beside reports / alone", busy, idle)])


def _client(running: server.Server, what: str, *more: str) -> "subprocess.Popen[str]":
    command = [
        sys.executable,
        "-m",
        "benchmarks.service.beside",
        what,
        running.host,
        str(running.port),
        running.key,
        *more,
    ]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def post(host: str, port: str, key: str) -> None:
    """Post for SECONDS, and print the time within which 99 % of the posts were answered, in ms."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def of_writer(number: int) -> list[float]:
        times_ms, began = list[float](), time.perf_counter() + number / POSTS_A_SECOND
        with closing(HTTPConnection(host, int(port))) as connection:
            for place in range(SECONDS * POSTS_A_SECOND // WRITERS):
                time.sleep(max(0, began + place * WRITERS / POSTS_A_SECOND - time.perf_counter()))
                sent = time.perf_counter()
                connection.request("POST", server.HITS, BODY % (place % 500, AGENT.encode(), place % 256), headers)
                response = connection.getresponse()
                response.read()
                assert response.status == 202, response.status
                times_ms.append((time.perf_counter() - sent) * 1000)
        return times_ms

    with ThreadPoolExecutor(WRITERS) as pool:
        times = sorted(each for times_ms in pool.map(of_writer, range(WRITERS)) for each in times_ms)
    print(times[len(times) * 99 // 100])


def read(host: str, port: str, key: str, end: str, days: str) -> None:
    """Ask for reports from READERS connections until standard input is closed."""
    running, stopping = server.Server(host, int(port), key, 0, Path()), threading.Event()
    first, number = date.fromisoformat(end) - timedelta(days=int(days)), int(days)

    def of_reader(seed: int) -> None:
        drawn, reader = random.Random(seed), Reader(running)
        with closing(reader):
            while not stopping.is_set():
                begin, length = drawn.randrange(number - 1), drawn.randrange(1, number)
                until = min(begin + length, number)
                range = {"dateFrom": first + timedelta(days=begin), "dateTo": first + timedelta(days=until)}
                if drawn.random() < 0.3:
                    reader.get("views", **range)
                else:
                    reader.get("breakdown", by=drawn.choice(BREAKDOWNS), **range)

    with ThreadPoolExecutor(READERS) as pool:
        readers = [pool.submit(of_reader, seed) for seed in range(READERS)]
        sys.stdin.read()
        stopping.set()
        for each in readers:
            each.result()


if __name__ == "__main__":
    (post if sys.argv[1] == "post" else read)(*sys.argv[2:])
