"""Resident memory of the server while 10 million hits arrive as NDJSON. The goal is a constant size under 600 MiB."""

import httpx

from benchmarks import client, server
from benchmarks.batch import CLIENTS, HITS_A_REQUEST, body
from benchmarks.measure import Measured, record

HITS = 10_000_000
PART = 200_000
STEPS = 10


def main() -> None:
    resident: list[float] = []
    with server.running() as running, httpx.Client(headers=running.auth, timeout=60) as reader:
        headers = {**running.auth, "Content-Type": "application/x-ndjson"}
        requests = [client.request("POST", server.HITS, headers, body(n)) for n in range(PART // HITS_A_REQUEST)]
        for part in range(HITS // PART):
            outcome = client.drive(running.host, running.port, requests, CLIENTS, 202)
            assert not outcome.unexpected, outcome.unexpected[0]
            reader.get(f"{running.url}{server.VIEWS}").raise_for_status()
            running.wait_until_loaded()
            if (part + 1) % (HITS // PART // STEPS) == 0:
                resident.append(running.resident_mib())
    record("memory", [Measured(f"resident, after each of {STEPS} parts of {HITS:,} hits", "MiB", resident)])
