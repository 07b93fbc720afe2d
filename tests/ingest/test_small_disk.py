"""On a disk that is nearly full, hits are refused in time, waiting hits are loaded, and no accepted hit is lost."""

import asyncio
import random
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from ingest.errors import Overloaded
from ingest.hits.hit import Hit
from ingest.hits.row import row
from ingest.hotlog.deduplication import Post
from ingest.hotlog.writer import HotLog
from tests.stores.small_disk import SmallDisk
from tests.warehouse.site import NOON, Site, view
from warehouse.schema import Row
from warehouse.tables import HITS_TABLE

MB = 1_000_000
END_S = 60
"""Deadline in seconds for an expected change; no test asserts a time."""
NOW_US = int(NOON.timestamp() * 1_000_000)
CHANCE = random.Random(1)


def usual_view(second: int) -> dict[str, Any]:
    agent = f"Mozilla/5.0 (X11; Linux x86_64; rv:{CHANCE.randrange(120, 150)}.0) Gecko/20100101 Firefox/140.0"
    more = {"user_agent": agent, "referrer": f"https://example.com/{CHANCE.randrange(1_000)}"}
    return view(path=f"/docs/{CHANCE.randrange(500)}", ts=NOON + timedelta(seconds=second), **more)


def random_row() -> Row:
    """Return a row with a path that does not compress."""
    path = "/" + CHANCE.randbytes(1_000).hex()
    return row("site", Hit(path, NOW_US, "", None, {}, None, None, None), "server", NOW_US)


async def post(log: HotLog, rows: int) -> int:
    return (await log.post(Post("site", [random_row() for _ in range(rows)], []))).accepted


async def post_until_accepted(log: HotLog) -> int:
    while True:
        with suppress(Overloaded):
            return await post(log, 1)
        await asyncio.sleep(0)


def stored(site: Site) -> int:
    return sum(file.rows for file in site.state(HITS_TABLE).files)


@pytest.mark.long
@pytest.mark.parametrize("small_disk", [64], indirect=True)
def test_hot_log_of_19_mb_is_loaded_with_9_mb_of_free_space(small_disk: SmallDisk) -> None:
    site = Site(small_disk.folder / "data")
    for second in range(67):
        site.post(*(usual_view(second) for _ in range(1_200)))
    assert sum(file.stat().st_size for file in site.hot_log.parent.glob("hot.sqlite*")) > 19 * MB
    small_disk.fill(leave_bytes=9 * MB)
    assert site.load().rows == stored(site) == 67 * 1_200
    assert site.waiting() == 0


@pytest.mark.long
def test_hits_are_refused_while_there_is_enough_space_to_load_the_accepted_ones(small_disk: SmallDisk) -> None:
    site = Site(small_disk.folder / "data")

    async def post_until_refused_and_again_after_a_load() -> int:
        log, accepted, refusal = HotLog(site.hot_log, 1_000_000), 0, ""
        while not refusal:
            try:
                accepted += await post(log, 200)
            except Overloaded as error:
                refusal = str(error)
        assert refusal.startswith("disk full: ")
        assert accepted > 1_000
        assert site.load().rows == accepted
        accepted += await post_until_accepted(log)
        log.close()
        return accepted

    accepted = asyncio.run(asyncio.wait_for(post_until_refused_and_again_after_a_load(), END_S))
    site.load()
    assert (stored(site), site.waiting()) == (accepted, 0)


@pytest.mark.long
def test_disk_filled_by_another_program_is_reported_and_hits_are_stored_later(small_disk: SmallDisk) -> None:
    site = Site(small_disk.folder / "data")

    async def post_before_and_after() -> int:
        log = HotLog(site.hot_log, 1_000_000)
        accepted = await post_until_accepted(log)
        small_disk.fill()
        while log.fault is None:
            with suppress(Overloaded):
                accepted += await post(log, 200)
        assert log.fault == "disk full (SQLITE_FULL)"
        while log.shortage is None:  # noqa: ASYNC110  # the writer thread sets it
            await asyncio.sleep(0)
        assert log.shortage.startswith("disk full: 0.0 MiB are free")
        small_disk.free()
        accepted += await post_until_accepted(log)
        log.close()
        return accepted

    accepted = asyncio.run(asyncio.wait_for(post_before_and_after(), END_S))
    site.load()
    assert stored(site) == accepted
