"""Seconds from the start of the command to the first accepted hit. The goal is 2 s."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

from api.server import serve
from benchmarks.measure import RUNS, Measured, record
from benchmarks.service import server

COMMAND = str(Path(sys.executable).parent / "readership")
DEADLINE_S = 60


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="readership-bench-") as scratch:
        data = Path(scratch) / "data"
        key = server.create_key(data)
        record("start", [Measured("start to first accepted hit", "s", [_start(data, key) for _ in range(RUNS)])])


def _start(data: Path, key: str) -> float:
    port = _free_port()
    began = time.perf_counter()
    with subprocess.Popen(
        [COMMAND, "--data", str(data), "serve", "--port", str(port)], stderr=subprocess.DEVNULL
    ) as process:
        while not _is_accepted(port, key):
            assert time.perf_counter() - began < DEADLINE_S
        took = time.perf_counter() - began
        process.terminate()
        process.wait(DEADLINE_S)
    return took


def _free_port() -> int:
    listener = serve.listen("127.0.0.1", 0)
    port: int = listener.getsockname()[1]
    listener.close()
    return port


def _is_accepted(port: int, key: str) -> bool:
    hit = {"path": "/", "userAgent": "GPTBot/1.3"}
    try:
        answer = httpx.post(
            f"http://127.0.0.1:{port}{server.HITS}",
            json=hit,
            headers={"Authorization": f"Bearer {key}"},
            timeout=DEADLINE_S,
        )
    except httpx.TransportError:
        return False
    return answer.status_code == 202
