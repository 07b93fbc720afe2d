"""Durable posts of one hit with a key, against an empty 202 endpoint of the same server. The goal is a ratio of 0.5."""

from benchmarks.measure import RUNS, Measured, ratio, record
from benchmarks.service import client, server

REQUESTS = 20_000
CLIENTS = 64
AGENT = (
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/17.6 Safari/605.1.15"
)
BODY = b'{"path":"/docs/%d","userAgent":"%s","referrer":"https://example.com/","address":"9.9.9.%d"}'


def main() -> None:
    hits: list[float] = []
    empties: list[float] = []
    with server.running() as running:
        headers = {**running.auth, "Content-Type": "application/json"}
        for _ in range(RUNS + 1):
            for target, rates in ((server.EMPTY, empties), (server.HITS, hits)):
                requests = [
                    client.request("POST", target, headers, BODY % (number % 500, AGENT.encode(), number % 256))
                    for number in range(REQUESTS)
                ]
                outcome = client.drive(running.host, running.port, requests, CLIENTS, 202)
                assert not outcome.unexpected, outcome.unexpected[0]
                rates.append(outcome.per_second)
    single, empty = Measured("single hit", "requests/s", hits[1:]), Measured("empty 202", "requests/s", empties[1:])
    record("single", [single, empty, ratio("single hit / empty 202", single, empty)])
