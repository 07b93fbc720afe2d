"""A 202 means stored and counted exactly once, with any process killed and any number of server processes."""

import csv
import io
import itertools
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from tests.processes.reading import events, hits
from tests.processes.running import Running
from tests.rounds import rounds, seeded

KILLS = max(4, rounds(20))
CLIENTS = 8
TEST_S = 600
"""Timeout of the test with many kills, in seconds. On a busy machine it may exceed the 300 s of other tests."""
WAIT_S = 60
LOG_CHARACTERS_SHOWN = 20_000
REFUSED_S = 0.05
"""Pause after a post to a service that does not run, in seconds."""
SEARCH_ROUNDS = 50
BYTES = 7


def is_event(path: str) -> bool:
    return int(path.rpartition("/")[2]) % 2 == 0


def sent(path: str) -> dict[str, object]:
    """Return an event, or a hit that is also a request with a size."""
    return {"path": path, "userAgent": "GPTBot/1.3"} | (
        {"name": path} if is_event(path) else {"status": 200, "bytes": BYTES}
    )


@dataclass
class Senders:
    """Clients that post until `stopping` is set. Clients with event ids repeat each hit until it is acknowledged."""

    running: Running
    acknowledged: set[str] = field(default_factory=set)
    unsure: set[str] = field(default_factory=set)
    changed: threading.Condition = field(default_factory=threading.Condition)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def send(self, with_event_id: bool, stopping: threading.Event, pending: list[str]) -> list[str]:
        """Post hits one after the other until `stopping` is set; return the hits that must be sent again."""
        with httpx.Client(headers=self.running.auth, timeout=30) as client:
            while not stopping.is_set():
                path = pending.pop() if pending else f"/{'e' if with_event_id else 'p'}/{next(self.numbers)}"
                hit = sent(path) | ({"eventId": path} if with_event_id else {})
                try:
                    answer = client.post(self.running.events if is_event(path) else self.running.hits, json=hit)
                except httpx.TransportError:
                    pending = [*pending, path] if with_event_id else pending
                    self._record(self.unsure, path)
                    stopping.wait(REFUSED_S)
                    continue
                assert answer.status_code == 202, answer.text
                self._record(self.acknowledged, path)
        return pending

    def wait_for(self, more: int, within_s: float = WAIT_S) -> None:
        """Wait until this many more hits are acknowledged."""
        with self.changed:
            target = len(self.acknowledged) + more
            came = self.changed.wait_for(lambda: len(self.acknowledged) >= target, timeout=within_s)
            assert came, (
                f"{target - len(self.acknowledged)} of {more} are missing after {within_s:g} s; its log:\n{self._log()}"
            )

    def _log(self) -> str:
        """Return the end of the service's log since its last start."""
        return self.running.log.read_text()[-LOG_CHARACTERS_SHOWN:]

    def _record(self, group: set[str], path: str) -> None:
        with self.changed:
            group.add(path)
            self.changed.notify_all()


@pytest.mark.timeout(TEST_S)
def test_kills_under_load_lose_and_repeat_no_acknowledged_hit(start: Callable[..., Running]) -> None:
    chance = seeded(20260901)
    running = start(READERSHIP_LOAD_EVERY_S="1", READERSHIP_LOAD_ROWS="40")
    senders = Senders(running)
    again: list[list[str]] = [[] for _ in range(CLIENTS)]
    for kill in range(KILLS):
        stopping = threading.Event()
        with ThreadPoolExecutor(CLIENTS) as pool:
            sending = [pool.submit(senders.send, client % 2 == 0, stopping, again[client]) for client in range(CLIENTS)]
            try:
                senders.wait_for(chance.randrange(1, 200))
                running.kill()
            finally:
                stopping.set()  # without it the thread pool would wait for its senders for ever
            again = [each.result() for each in sending]
        running.processes = 2 if kill % 3 == 0 else 1
        running.start()
    for client, pending in enumerate(again):
        if pending:
            assert client % 2 == 0
            for url, chosen in ((running.hits, False), (running.events, True)):
                rows = [{**sent(path), "eventId": path} for path in pending if is_event(path) is chosen]
                httpx.post(url, headers=running.auth, json=rows, timeout=60) if rows else None
            senders.acknowledged.update(pending)
    exported = _exported(running)
    asked = running.run("sql", "SELECT sum(requests)::INT AS requests, sum(bytes)::INT AS bytes FROM requests")
    assert json.loads(asked.stdout) == [{"requests": exported.total(), "bytes": BYTES * exported.total()}]
    assert running.stop() == 0
    stored = hits(running.data)
    assert exported == stored
    stored += events(running.data)
    assert max(stored.values()) == 1
    assert senders.acknowledged <= stored.keys() <= senders.acknowledged | senders.unsure
    assert len(senders.acknowledged) > KILLS
    assert running.run("doctor").returncode == 0


def test_wait_that_times_out_shows_the_log_of_the_service(tmp_path: Path) -> None:
    running = Running(tmp_path / "data")
    running.log.write_text("the disk is full")
    with pytest.raises(AssertionError, match=r"1 of 1 are missing after 0 s; its log:\n\s*the disk is full"):
        Senders(running).wait_for(1, within_s=0)


@pytest.mark.long
def test_each_of_four_processes_exports_every_acknowledged_hit_without_delay(start: Callable[..., Running]) -> None:
    running = start(processes=4, READERSHIP_LOAD_EVERY_S="1", READERSHIP_LOAD_ROWS="700")
    clients = 32
    sizes = [12, 13] * 12 + [12]
    extra = 10_000 - clients * sum(sizes)

    def send(client: int) -> None:
        with httpx.Client(headers=running.auth, timeout=60) as http:
            for number, size in enumerate(sizes):
                rows = size + (extra if client == number == 0 else 0)
                content = [{"path": f"/{client}/{number % 5}", "userAgent": "ClaudeBot/1.0"}] * rows
                assert http.post(running.hits, json=content).json()["accepted"] == rows

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(send, range(clients)))
    answers = _from_each_process(running, 4)
    assert {answer["totals"]["ai"] for answer in answers.values()} == {10_000}
    assert len({str(answer) for answer in answers.values()}) == 1


def _from_each_process(running: Running, processes: int) -> dict[str, dict[str, object]]:
    """Return an export from each server process. The first part of a request's id identifies the process."""
    answers: dict[str, dict[str, object]] = {}
    for _ in range(SEARCH_ROUNDS):
        with ThreadPoolExecutor(16) as pool:
            for answer in pool.map(lambda _: httpx.get(running.views, headers=running.auth, timeout=60), range(16)):
                answers.setdefault(answer.headers["x-request-id"].partition("-")[0], answer.json())
        if len(answers) == processes:
            return answers
    raise AssertionError(f"only {len(answers)} processes answered")


def _exported(running: Running) -> Counter[str]:
    answer = httpx.get(running.views, headers={**running.auth, "Accept": "text/csv"}, timeout=60)
    return Counter({row["path"]: int(row["total"]) for row in csv.DictReader(io.StringIO(answer.text))})
