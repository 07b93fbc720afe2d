"""Hits that arrive during a measurement are stored, until the measurement ends."""

import httpx
import pytest

from benchmarks.service import arrivals, server

pytestmark = pytest.mark.night


def test_arriving_hits_are_stored() -> None:
    arrived: list[float] = []
    with server.running() as running:
        with arrivals.arriving(running, 100, arrived):
            while views(running) == 0:
                pass
        assert len(arrived) == 1
        assert arrived[0] > 0
        assert views(running) > 0


def views(running: server.Server) -> int:
    answer = httpx.get(f"{running.url}{server.VIEWS}", headers=running.auth, timeout=60)
    total: int = answer.raise_for_status().json()["totals"]["total"]
    return total
