"""NDJSON posts of 1,000 hits, in hits/s, against decoding the same rows and writing them as Parquet in one process.

Goal: 100,000 hits/s on one core, or half of decode-and-write.
"""

import io
import time

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import RUNS, Measured, ratio, record
from benchmarks.service import client, server
from benchmarks.single import AGENT
from ingest.hits.hit import ServerHit

HITS_A_REQUEST = 1_000
REQUESTS = 300
CLIENTS = 4
ROW = b'{"path":"/docs/%d","userAgent":"%s","referrer":"https://example.com/","status":200,"address":"9.%d.%d.%d"}'
TIMESTAMP = pa.timestamp("us", "UTC")


def main() -> None:
    bodies = [body(number) for number in range(REQUESTS)]
    posted: list[float] = []
    cpu: list[float] = []
    written: list[float] = []
    with server.running() as running:
        headers = {**running.auth, "Content-Type": "application/x-ndjson"}
        requests = [client.request("POST", server.HITS, headers, body) for body in bodies]
        for _ in range(RUNS + 1):
            written.append(_decode_and_write(bodies))
            running.wait_until_loaded()
            before = running.cpu_s()
            outcome = client.drive(running.host, running.port, requests, CLIENTS, 202)
            assert not outcome.unexpected, outcome.unexpected[0]
            hits = outcome.answered * HITS_A_REQUEST
            posted.append(hits / outcome.seconds)
            cpu.append(hits / (running.cpu_s() - before))
    batch, floor = Measured("batch post", "hits/s", posted[1:]), Measured("decode and write", "hits/s", written[1:])
    per_core = Measured("batch post, by processor time", "hits/s of one core", cpu[1:])
    record("batch", [batch, per_core, floor, ratio("batch post / decode and write", batch, floor)])


def body(number: int) -> bytes:
    return b"\n".join(ROW % (i % 500, AGENT.encode(), number % 256, i // 256, i % 256) for i in range(HITS_A_REQUEST))


def _decode_and_write(bodies: list[bytes]) -> float:
    """Return the hits/s of msgspec and pyarrow in one thread, without classification, validation or durability."""
    decoder = msgspec.json.Decoder(ServerHit)
    began = time.perf_counter()
    for body in bodies:
        rows = decoder.decode_lines(body)
        columns = {
            "path": [row.path for row in rows],
            "user_agent": [row.user_agent for row in rows],
            "referrer": [row.referrer for row in rows],
            "status": [row.status for row in rows],
            "ts": pa.array([row.timestamp for row in rows], TIMESTAMP),
        }
        pq.write_table(pa.table(columns), io.BytesIO(), compression="zstd")
    return len(bodies) * HITS_A_REQUEST / (time.perf_counter() - began)
