"""Beacons without a key whose event ids are those that a server is about to send."""

import httpx

from tests.attacks.target import TIMEOUT_S, attacked
from tests.processes.running import Running

COUNT = 5
EVENT_IDS = [f"order-{number}" for number in range(COUNT)]
BROWSER = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"}


def guessed(running: Running) -> dict[str, int]:
    """Send a beacon and then a server's hit of each event id; return the views of the server's and beacons' paths."""
    for each in EVENT_IDS:
        beacon = {"url": "https://example.com/beacon", "eventId": each}
        httpx.post(running.hits, json=beacon, headers=BROWSER, timeout=TIMEOUT_S).raise_for_status()
    running.post(
        [{"path": "/server", "userAgent": BROWSER["User-Agent"], "eventId": each} for each in EVENT_IDS]
    ).raise_for_status()
    return {each["path"]: each["total"] for each in running.get()["views"]}


def main() -> None:
    with attacked() as running:
        stored = guessed(running).get("/server", 0)
    print(f"{COUNT} hits of a server after beacons with the same event ids: {stored} stored")


if __name__ == "__main__":
    main()
