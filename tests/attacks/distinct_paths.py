"""Beacons with long, distinct paths, referrers and `utm_source`s, which anybody can send.

Against a service whose beacons are not limited by address (READERSHIP_BEACONS_PER_MINUTE=100000000):

    python -m tests.attacks.distinct_paths http://127.0.0.1:8000 PROJECT VIEWS
"""

import asyncio
import secrets
import sys
import time
from collections import Counter

import httpx

SENDERS = 32
PATH_CHARACTERS = 2_000
BROWSER = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"}


def beacon() -> dict[str, str]:
    text = secrets.token_urlsafe(PATH_CHARACTERS * 3 // 4)
    return {
        "path": f"/{text}?utm_source={text[:300]}",
        "referrer": f"https://{secrets.token_hex(30)}.example/{text}",
        "eventId": text[:32],
    }


def attack(url: str, project: str, views: int) -> Counter[int]:
    """Send beacons, and return the number of responses by status."""
    return asyncio.run(_attack(f"{url}/v1/analytics/{project}/hits", views))


async def _attack(hits: str, views: int) -> Counter[int]:
    statuses: Counter[int] = Counter()
    numbers = iter(range(views))

    async def send() -> None:
        async with httpx.AsyncClient(headers=BROWSER, timeout=60, verify=False) as client:
            for _ in numbers:
                statuses[(await client.post(hits, json=beacon())).status_code] += 1

    await asyncio.gather(*(send() for _ in range(SENDERS)))
    return statuses


if __name__ == "__main__":
    began_s = time.monotonic()
    print(dict(attack(sys.argv[1], sys.argv[2], int(sys.argv[3]))), f"in {time.monotonic() - began_s:.0f} s")
