"""The metrics are valid for Prometheus, and the same from each server process, also after one has died."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.processes.running import Running
from tests.processes.waiting import each_alone, processes_of, until

GAUGES = {"readership_waiting_hits", "readership_jobs", "readership_job_queue_age_seconds"}


def scraped(service: Running) -> str:
    return httpx.get(f"{service.url}/metrics", timeout=60).text


def sums(text: str, name: str, **labels: str) -> float:
    families = text_string_to_metric_families(text)
    samples = [sample for family in families for sample in family.samples if sample.name == name]
    return sum(sample.value for sample in samples if labels.items() <= sample.labels.items())


def posted(service: Running) -> float:
    """Return the number of posts answered 202. A request is counted after its response."""
    return sums(scraped(service), "readership_requests_total", method="POST", status="202")


def check(text: str) -> None:
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def kill_a_process(service: Running) -> None:
    """Kill one of two server processes, and wait until another process has taken its place."""
    first, second = processes_of(service)
    os.kill(first, signal.SIGKILL)
    until(lambda: len({*processes_of(service)} - {first, second}) == 1)


@pytest.mark.needs("promtool")
def test_metrics_are_valid_for_prometheus(service: Running) -> None:
    assert service.post({"path": "/a"}).status_code == 202
    check(scraped(service))


@pytest.mark.long
@pytest.mark.needs("promtool")
def test_metrics_are_valid_and_complete_after_a_process_was_killed(start: Callable[..., Running]) -> None:
    service = start(processes=2)
    for posts, _ in enumerate(each_alone(service), start=1):
        assert service.post(3 * [{"path": "/a"}]).status_code == 202
        until(lambda posts=posts: posted(service) == posts)
        check(scraped(service))
    kill_a_process(service)
    for posts, _ in enumerate(each_alone(service), start=2):
        text = scraped(service)
        check(text)
        assert sums(text, "readership_hits_total", outcome="accepted") == 4 + posts
        assert sums(text, "readership_requests_total", method="POST", status="202") == posts
        assert service.post([{"path": "/a"}]).status_code == 202
        until(lambda posts=posts: posted(service) == posts + 1)
    assert sums(scraped(service), "readership_hits_total", outcome="accepted") == 8
    for family in text_string_to_metric_families(text):
        if family.name in GAUGES:
            assert all("pid" not in sample.labels for sample in family.samples)
            assert len({str(sample.labels) for sample in family.samples}) == len(family.samples)
    check_counter_files(service)


def check_counter_files(service: Running) -> None:
    """Check that all blocks are allocated: a write to a block that a full disk cannot provide kills the process."""
    files = sorted((service.data / "run" / "metrics").iterdir())
    assert [file.name for file in files] == ["counter_0.db", "counter_1.db", "histogram_0.db", "histogram_1.db"]
    for each in map(Path.stat, files):
        assert each.st_blocks * 512 >= each.st_size >= 1 << 20
