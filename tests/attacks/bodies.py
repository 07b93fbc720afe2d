"""Bodies that take much more memory than their bytes, and posts that never end, with a key that may post hits."""

import gzip
import json
import secrets
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx

from tests.attacks.target import TIMEOUT_S, attacked, connect, resident_mib, send
from tests.processes.running import PROJECT, Running

BODY_BYTES = 8 * 1024 * 1024
AT_ONCE = 8
UNFINISHED = 250
POSTS, ROWS = 60, 300
PATH_BYTES, REFERRER_BYTES, TEXT_BYTES = 2_000, 8_000, 14_000


def _post(running: Running, content: bytes, **headers: str) -> int:
    url = f"{running.url}/v1/analytics/{PROJECT}/hits"
    key = {"Authorization": f"Bearer {running.key}", "Content-Type": "application/json"}
    return httpx.post(url, content=content, headers=key | headers, timeout=TIMEOUT_S).status_code


def empty_rows(running: Running) -> tuple[set[int], float]:
    """Post AT_ONCE small gzip bodies of millions of empty rows; return the statuses, and the memory in MiB."""
    body = gzip.compress(b"[" + b"{}," * (BODY_BYTES // 3 - 2) + b"{}]")
    before = resident_mib(running)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        encoded = {"Content-Encoding": "gzip"}
        statuses = set(pool.map(lambda _: _post(running, body, **encoded), range(AT_ONCE)))
    return statuses, resident_mib(running, "VmHWM") - before


def unfinished(running: Running, posts: int, size: int = BODY_BYTES) -> tuple[int, float]:
    """Begin posts and send all but the last byte; return the status of a small post beside them, and the MiB."""
    head = (
        f"POST /v1/analytics/{PROJECT}/hits HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {running.key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
    )
    before = resident_mib(running)
    with ExitStack() as stack:
        opened = [stack.enter_context(connect(running)) for _ in range(posts)]
        for each in opened:
            send(each, head.encode() + b" " * (size - 1))
        status = _post(running, b'{"path": "/a"}')
        return status, resident_mib(running, "VmHWM") - before


def _text(size: int) -> str:
    return "/" + secrets.token_hex(size // 2)


def long_rows(running: Running, posts: int) -> float:
    """Post rows with long, distinct texts; return the memory in MiB."""
    before = resident_mib(running)
    for _ in range(posts):
        rows = [
            {
                "path": _text(PATH_BYTES),
                "userAgent": _text(TEXT_BYTES),
                "referrer": "https://a.b" + _text(REFERRER_BYTES),
            }
            for _ in range(ROWS)
        ]
        assert _post(running, json.dumps(rows).encode()) == 202
    return resident_mib(running, "VmHWM") - before


def main() -> None:
    with attacked() as running:
        statuses, mib = empty_rows(running)
        print(f"{AT_ONCE} bodies of empty rows, 8 kB of gzip each: {statuses}, +{mib:.0f} MiB", flush=True)
    with attacked() as running:
        status, mib = unfinished(running, UNFINISHED)
        print(f"{UNFINISHED} unfinished posts of 8 MiB: +{mib:.0f} MiB, a small post: {status}", flush=True)
    with attacked() as running:
        row_bytes = PATH_BYTES + REFERRER_BYTES + TEXT_BYTES
        print(f"{POSTS * ROWS:,} rows of {row_bytes:,} bytes: +{long_rows(running, POSTS):.0f} MiB")


if __name__ == "__main__":
    main()
