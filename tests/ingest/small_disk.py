"""What a hot log does on a small disk, run by `test_small_disk` where /mnt is one; the outcome is printed as JSON."""

import asyncio
import json
import random
import sys
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx

from ingest.errors import Overloaded
from ingest.hit import Hit
from ingest.hotlog import HotLog
from ingest.page_view import row
from ingest.seen import Post
from tests.running import Running
from tests.waiting import until
from tests.warehouse.site import NOON, Site, view
from warehouse import disk_space, lake
from warehouse.schema import Row

DISK = Path("/mnt")
FOLDER = DISK / "data"
OTHERS = DISK / "others"
"""A file of another program."""
NOW_US = int(NOON.timestamp() * 1_000_000)
CHANCE = random.Random(1)


def drain() -> dict[str, Any]:
    """Load a hot log of 67 batches of usual hits when 9 MB are free."""
    site = Site(FOLDER)
    for second in range(67):
        site.post(*(_usual_view(second) for _ in range(1_200)))
    size = sum(file.stat().st_size for file in FOLDER.glob("hot.sqlite*"))
    _fill(9_000_000)
    return {"size": size, "loaded": site.load().rows, "waiting": site.waiting(), "stored": _stored(site)}


async def refuse() -> dict[str, Any]:
    """Post paths that do not compress until they are refused, load them, and post again."""
    site, log = Site(FOLDER), HotLog(FOLDER / "hot.sqlite", 1_000_000)
    accepted, refusal = 0, ""
    while not refusal:
        try:
            accepted += (await log.post(Post("site", [_random_row() for _ in range(200)], []))).accepted
        except Overloaded as error:
            refusal = str(error)
    site.load()
    accepted += await _post_until_accepted(log)
    log.close()
    site.load()
    return {"refusal": refusal, "accepted": accepted, "stored": _stored(site), "waiting": site.waiting()}


async def others() -> dict[str, Any]:
    """Post while another program takes all of the disk, and once it has given it back."""
    site, log = Site(FOLDER), HotLog(FOLDER / "hot.sqlite", 1_000_000)
    accepted = await _post_until_accepted(log)
    _fill(0)
    while log.fault is None:
        with suppress(Overloaded):
            accepted += (await log.post(Post("site", [_random_row() for _ in range(200)], []))).accepted
    fault = log.fault
    while log.shortage is None:  # noqa: ASYNC110  # the writer thread sets it
        await asyncio.sleep(0)
    shortage = log.shortage
    OTHERS.unlink()
    accepted += await _post_until_accepted(log)
    log.close()
    site.load()
    return {"fault": fault, "shortage": shortage, "accepted": accepted, "stored": _stored(site)}


def serve() -> dict[str, Any]:
    """Ask a service what it does while 5 MB are free, and after."""
    service = Running(DISK / "data").start()
    _fill(5_000_000)
    until(lambda: _ready(service).status_code == 503)
    shown, refused = _ready(service).json()["checks"], service.post({"path": "/refused"})
    exported = service.get()["totals"]["total"]
    OTHERS.unlink()
    until(lambda: _ready(service).status_code == 200)
    accepted = service.post({"path": "/accepted"})
    service.stop()
    return {
        "shown": shown,
        "refused": [refused.status_code, refused.headers.get("retry-after"), refused.json()["detail"]],
        "exported": exported,
        "accepted": accepted.status_code,
    }


def _ready(service: Running) -> httpx.Response:
    return httpx.get(f"{service.url}/readyz", timeout=60)


def _usual_view(second: int) -> dict[str, Any]:
    agent = f"Mozilla/5.0 (X11; Linux x86_64; rv:{CHANCE.randrange(120, 150)}.0) Gecko/20100101 Firefox/140.0"
    more = {"user_agent": agent, "referrer": f"https://example.com/{CHANCE.randrange(1_000)}"}
    return view(path=f"/docs/{CHANCE.randrange(500)}", ts=NOON + timedelta(seconds=second), **more)


def _random_row() -> Row:
    path = "/" + CHANCE.randbytes(1_000).hex()
    return row("site", Hit(path, NOW_US, "", None, None, None, None, None), "server", NOW_US)


async def _post_until_accepted(log: HotLog) -> int:
    while True:
        with suppress(Overloaded):
            return (await log.post(Post("site", [_random_row()], []))).accepted
        await asyncio.sleep(0)


def _fill(free: int) -> None:
    """Leave so many bytes of the disk to us."""
    with OTHERS.open("wb") as file:
        file.write(bytes(disk_space.free_bytes(DISK) - free))


def _stored(site: Site) -> int:
    return sum(file.rows for file in site.state(lake.HITS_TABLE).files)


if __name__ == "__main__":
    outcome = {"drain": drain, "refuse": refuse, "others": others, "serve": serve}[sys.argv[1]]()
    print(json.dumps(asyncio.run(outcome) if asyncio.iscoroutine(outcome) else outcome))
