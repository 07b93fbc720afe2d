"""A service under a constant mixed load: its counts stay exact, and its memory, open files and disk stay level.

`python -m tests.night.soak [--minutes 60]` starts a service of two processes. Clients post batches with repeated event
ids and beacons, read reports and pages, and import a log every minute; every fifth minute one process is killed. Each
minute prints the number of views and the sizes. The exit status is 1 if a view is missing or counted twice, or if the
median of a size in the last quarter is GROWTH times its median in the second quarter.
"""

import argparse
import os
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import httpx

from tests.ingest.formats.test_clf import line
from tests.processes.running import PROJECT, Running
from tests.processes.state import children, command_line, descendants
from tests.processes.waiting import until

GROWTH = 1.2
BATCH = 200
PATHS = 500
RETRIED = (503, 429)
LOG_LINES = 1_000
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"
REPORTS = ("views?limit=50", "breakdown?by=agent", "series?interval=hour", "views?path=/p1*&offset=20")


@dataclass
class Load:
    """Clients of a service, each in a thread, and the number of views that the service has accepted."""

    running: Running
    stopping: threading.Event = field(default_factory=threading.Event)
    accepted: int = 0
    unknown: int = 0
    """Number of views of posts whose connection broke: each is stored whole or not at all."""
    faults: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def post(self, client: httpx.Client, number: int) -> None:
        """Post a batch of new event ids, and again until it is answered: it must be counted once."""
        rows = [
            {
                "path": f"/p{(number + each) % PATHS}",
                "userAgent": FIREFOX,
                "eventId": f"{threading.get_ident()}-{number}-{each}",
            }
            for each in range(BATCH)
        ]
        while not self.stopping.is_set():
            try:
                answer = client.post(self.running.hits, json=rows, headers=self.running.auth)
            except httpx.TransportError:
                continue  # a process was killed; the same ids again
            if answer.status_code == 202:
                body = answer.json()
                if body["accepted"] + body["duplicates"] != BATCH:
                    self.faults.append(f"{body} for a batch of {BATCH}")
                with self._lock:
                    self.accepted += BATCH
                return
            if answer.status_code not in RETRIED:
                self.faults.append(f"post: {answer.status_code} {answer.text[:200]}")
                return
        with self._lock:
            self.unknown += BATCH

    def read(self, client: httpx.Client, number: int) -> None:
        """Read a report."""
        address = f"{self.running.url}/v1/analytics/{PROJECT}/{REPORTS[number % len(REPORTS)]}"
        try:
            answer = client.get(address, headers=self.running.auth)
        except httpx.TransportError:
            return
        if answer.status_code != 200 and answer.status_code not in RETRIED:
            self.faults.append(f"{address}: {answer.status_code} {answer.text[:200]}")

    def import_log(self, log: Path, minute: int) -> None:
        """Append lines to a log, and import it whole."""
        with log.open("ab") as file:
            file.writelines(line(b"GET /log/%d HTTP/1.1" % minute) + b"\n" for _ in range(LOG_LINES))
        done = self.running.run("import", PROJECT, str(log))
        if done.returncode:
            self.faults.append(f"import: {done.stderr[-200:]}")
        else:
            self.accepted += LOG_LINES

    @contextmanager
    def clients(self) -> Iterator[None]:
        """Run two senders and one reader at a pace that leaves the service time."""

        def run(action: Callable[[httpx.Client, int], None]) -> None:
            with httpx.Client(timeout=60) as client:
                for number in count():
                    if self.stopping.wait(0.2):
                        return
                    action(client, number)

        threads = [threading.Thread(target=run, args=[each]) for each in (self.post, self.post, self.read)]
        for each in threads:
            each.start()
        try:
            yield
        finally:
            self.stopping.set()
            for each in threads:
                each.join()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=int, default=60)
    minutes = parser.parse_args().minutes
    with tempfile.TemporaryDirectory(prefix="readership-soak-") as folder:
        environ = {"READERSHIP_LOAD_EVERY_S": "5", "READERSHIP_JOBS_AT_ONCE": "0"}
        running = Running(Path(folder) / "data", 2, environ).start()
        try:
            faults = _soak(running, minutes)
        finally:
            running.kill()
    print("\n".join(faults) or "no fault")
    return 1 if faults else 0


def _soak(running: Running, minutes: int) -> list[str]:
    load, sizes = Load(running), []
    with load.clients():
        for minute in range(1, minutes + 1):
            load.stopping.wait(60)
            load.import_log(running.data.parent / "access.log", minute)
            if minute % 5 == 0:
                os.kill(_servers(running)[0], signal.SIGKILL)
                until(lambda: len(_servers(running)) == 2)
            else:
                sizes.append(_sizes(running))
            print(f"{minute:3} min  {load.accepted:,} views  {sizes[-1] if sizes else ''}", flush=True)
    return [*load.faults, *_wrong(load), *grown(sizes)]


def _wrong(load: Load) -> list[str]:
    """Return a line if the service counts more or fewer views than it accepted."""
    views = load.running.get("limit=1")["totals"]["total"]
    if load.accepted <= views <= load.accepted + load.unknown:
        return []
    return [f"{views} views are counted; {load.accepted} to {load.accepted + load.unknown} were sent"]


def grown(sizes: list[dict[str, float]]) -> list[str]:
    """Return a line for each size whose median grew by GROWTH from the second quarter to the last."""
    quarter = len(sizes) // 4
    if not quarter:
        return []
    lines = []
    for name in sizes[0]:
        early = statistics.median(each[name] for each in sizes[quarter : 2 * quarter])
        late = statistics.median(each[name] for each in sizes[-quarter:])
        if late > early * GROWTH:
            lines.append(f"{name} grew from {early:.0f} to {late:.0f}")
    return lines


def _servers(running: Running) -> list[int]:
    """Return the ids of the server processes: the descendants of the service that have no child, in order."""
    assert running.process is not None
    leaves = [pid for pid in descendants(running.process.pid) if not children(pid)]
    return [pid for pid in leaves if b"resource_tracker" not in command_line(pid)]


def _sizes(running: Running) -> dict[str, float]:
    """Return the memory of the largest process in MiB, and the numbers of its open files and threads."""
    memory, files, threads = [], [], []
    for pid in _servers(running):
        status = Path(f"/proc/{pid}/status").read_text()
        memory.append(int(status.partition("VmRSS:")[2].split()[0]) / 1024)
        threads.append(int(status.partition("Threads:")[2].split()[0]))
        files.append(sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()))
    return {"MiB": round(max(memory)), "open files": max(files), "threads": max(threads)}


if __name__ == "__main__":
    began = time.monotonic()
    status = main()
    print(f"{(time.monotonic() - began) / 60:.1f} minutes")
    sys.exit(status)
