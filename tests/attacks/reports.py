"""Many reports at once over many paths, beside single posts: by holders of a key, and of a share link."""

import multiprocessing
import statistics
import threading
import time
from http.client import HTTPConnection
from itertools import count
from multiprocessing.synchronize import Event

import httpx

from api.accounts import share_links
from api.settings import read
from tests.attacks.target import attacked
from tests.processes.running import PROJECT, Running
from warehouse.control import database

HITS, PATHS, HITS_A_POST = 200_000, 100_000, 10_000
READERS = 100
POSTS, POSTS_A_SECOND, ROUNDS = 200, 20, 2
BODY = b'{"path":"/a","userAgent":"Mozilla/5.0 Firefox/145.0"}'


def fill(running: Running) -> None:
    """Post HITS hits of PATHS paths, and load them."""
    headers = {**running.auth, "Content-Type": "application/x-ndjson"}
    with httpx.Client(headers=headers, timeout=60) as client:
        for first in range(0, HITS, HITS_A_POST):
            lines = [b'{"path":"/%s/%d"}' % (b"long" * 20, n % PATHS) for n in range(first, first + HITS_A_POST)]
            while client.post(running.hits, content=b"\n".join(lines)).status_code == 503:
                time.sleep(1)
    running.run("flush")


def share(running: Running) -> str:
    """Return the path of a share link."""
    engine = database.connect(read({}, running.data).database_url)
    token = share_links.create(engine, PROJECT, "attack", int(time.time()))[1]
    engine.close()
    return f"/shared/{token}"


def read_reports(
    host: str, port: int, target: str, headers: dict[str, str], answered: "multiprocessing.Queue[int]", stop: Event
) -> None:
    """Ask for reports over READERS connections until `stop` is set, in a process of its own."""
    numbers = count()
    statuses: list[int] = []

    def ask() -> None:
        connection = HTTPConnection(host, port, timeout=120)
        while not stop.is_set():
            try:
                connection.request("GET", target.replace("{n}", str(next(numbers))), headers=headers)
                response = connection.getresponse()
                response.read()
                statuses.append(response.status)
            except OSError:
                connection.close()

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(READERS)]
    for each in threads:
        each.start()
    stop.wait()
    answered.put(len(statuses))
    answered.put(sum(each == 200 for each in statuses))


def post_latencies_ms(running: Running) -> list[float]:
    """Post single hits at a constant rate, and return the latency of each."""
    url = httpx.URL(running.url)
    connection = HTTPConnection(url.host, url.port, timeout=120)
    headers = {**running.auth, "Content-Type": "application/json"}
    began = time.perf_counter()
    latencies: list[float] = []
    for number in range(POSTS):
        due = began + number / POSTS_A_SECOND
        time.sleep(max(0, due - time.perf_counter()))
        sent = time.perf_counter()
        connection.request("POST", f"/v1/analytics/{PROJECT}/hits", BODY, headers)
        response = connection.getresponse()
        response.read()
        assert response.status == 202, response.status
        latencies.append((time.perf_counter() - sent) * 1000)
    return latencies


def p99(latencies: list[float]) -> float:
    return statistics.quantiles(latencies, n=100)[98]


def beside_reports(running: Running, target: str, headers: dict[str, str]) -> tuple[list[float], int, int]:
    """Return the latencies of posts beside READERS readers, the answered reports, and those with the status 200."""
    context, url = multiprocessing.get_context("spawn"), httpx.URL(running.url)
    stop, answered = context.Event(), context.Queue()
    process = context.Process(target=read_reports, args=(url.host, url.port, target, headers, answered, stop))
    process.start()
    time.sleep(3)
    latencies = post_latencies_ms(running)
    stop.set()
    counts = answered.get(), answered.get()
    process.kill()
    process.join()
    return latencies, counts[0], counts[1]


def main() -> None:
    with attacked() as running:
        fill(running)
        page = f"/v1/analytics/{PROJECT}/views?dateFrom=2026-01-01T00:00:00Z&dateTo=2027-01-01T00:00:00Z&offset={{n}}"
        links: dict[str, str] = {}
        attacks = (("key", page, running.auth), ("share link", f"{share(running)}/export.csv?n={{n}}", links))
        for name, target, headers in attacks:
            for _ in range(ROUNDS):
                idle = p99(post_latencies_ms(running))
                latencies, answered, right = beside_reports(running, target, headers)
                print(
                    f"{name}: p99 of posts {idle:.0f} ms alone, {p99(latencies):.0f} ms beside {READERS} readers"
                    f" (x{p99(latencies) / idle:.1f}; median {statistics.median(latencies):.0f} ms);"
                    f" {answered} reports, {right} of them 200",
                    flush=True,
                )


if __name__ == "__main__":
    main()
