"""The processes of a service get their settings from the process that starts them."""

import os
import signal
from collections.abc import Callable

import httpx
import pytest

from tests.processes.running import Running
from tests.processes.waiting import each_alone, processes_of, started_processes, until, within_window


@pytest.mark.long
def test_restarted_process_has_the_run_secret_of_the_service(start: Callable[..., Running]) -> None:
    """Check that all processes count the beacons of an address together: the secret keys the hashes of addresses."""
    service = start(processes=2, READERSHIP_BEACONS_PER_MINUTE="3")

    def beacons(address: str) -> list[int]:
        headers = {"X-Forwarded-For": address}
        return [
            httpx.post(service.hits, json={"path": "/a"}, headers=headers, timeout=60).status_code
            for _ in range(2)
            for _ in each_alone(service)
        ]

    first, second = started_processes(service)
    os.kill(first, signal.SIGKILL)
    until(lambda: len({*processes_of(service)} - {first, second}) == 1)
    assert within_window(beacons) == [202, 202, 202, 429]
