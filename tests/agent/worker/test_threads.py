"""Threads of a worker: their end, and their clean-up of archived jobs and their folders."""

import threading
import time
from pathlib import Path

import pytest

from agent.jobs import journal, queue, store
from agent.jobs.queue import Outcome
from agent.worker import threads
from tests.agent.clock import SECOND_US, Clock
from tests.agent.conftest import PROJECT
from tests.agent.servers.dripping import dripping
from tests.agent.service.site import SECRETS, make_site, store_configuration
from tests.processes.running import PROJECT as SITE
from tests.processes.waiting import until
from warehouse import clock
from warehouse.control import database
from warehouse.database.pool import Pool
from warehouse.folder import sqlite_url


def test_folders_of_archived_and_unknown_jobs_are_removed(engine: Pool, clock: Clock, tmp_path: Path) -> None:
    jobs = tmp_path / "jobs"
    ids = [store.create(engine, PROJECT, "Fix it", None, clock.advance(1)).job.id for _ in range(2)]
    lease = queue.claim(engine, "worker", clock(), SECOND_US)
    assert lease is not None
    queue.finish(engine, lease, Outcome(None), clock())
    store.archive(engine, PROJECT, ids[0], clock())
    for name in (*ids, "unknown"):
        deep = jobs / name / "tree"
        deep.mkdir(parents=True)
        (deep / "file").touch()
        deep.chmod(0)
    threads._remove_folders(threads.WorkerConfig(engine, jobs, {}, 1, 10), threading.Event())
    assert [each.name for each in jobs.iterdir()] == [ids[1]]
    (jobs / ids[1] / "tree").chmod(0o700)


@pytest.mark.long
def test_worker_that_closes_does_not_wait_for_a_forge(tmp_path: Path) -> None:
    engine = database.connect(sqlite_url(tmp_path / "control.sqlite"))
    with make_site(tmp_path) as site, dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n[", b" ") as drip:
        store_configuration(engine, site, "sh", "-c", "cat > page.md", api_base=drip.url)
        id = store.create(engine, SITE, "Write a page", None, SECOND_US).job.id
        running = threads.WorkerThreads(threads.WorkerConfig(engine, tmp_path / "jobs", SECRETS, 1, 15))
        running.start()
        until(lambda: drip.requests)
        running.close()
        assert (drip.requests, drip.completed) == (1, 0)
    assert store.find(engine, SITE, id).status == "active", "the turn is back in the queue"
    assert journal.read(engine, id)[0][-1].text == f"pushed to readership/{id}"
    engine.close()


@pytest.mark.long
@pytest.mark.parametrize(
    ("retention_days", "jump_days", "left"),
    [
        (0, 0, {"archived": [0, 89, 91], "completed": []}),
        (90, 0, {"archived": [0, 89], "completed": []}),
        (90, 400, {"archived": [0, 89, 91], "completed": [31]}),
        (90, None, {"archived": [0, 89, 91], "completed": [31]}),
    ],
    ids=["no retention", "retention", "clock that jumped", "no record of the time"],
)
def test_worker_archives_idle_jobs_and_removes_old_ones_if_the_clock_is_trusted(
    engine: Pool, tmp_path: Path, retention_days: int, jump_days: int | None, left: dict[str, list[int]]
) -> None:
    """Create jobs that were archived 0, 89 and 91 days ago, and one that has been idle for 31 days."""
    now_us = time.time_ns() // 1_000
    jobs, lake = tmp_path / "jobs", tmp_path / "lake"
    lake.mkdir()
    if jump_days is not None:
        clock.record(lake, clock.Clock(now_us / SECOND_US - jump_days * 86_400))
    age_days = {}
    for days in (0, 89, 91):
        id = store.create(engine, PROJECT, "Fix it", None, now_us).job.id
        store.cancel(engine, PROJECT, id, now_us)
        store.archive(engine, PROJECT, id, now_us - days * threads.DAY_US)
        age_days[id] = days
        (jobs / id).mkdir(parents=True)
    idle = store.create(engine, PROJECT, "Fix it", None, now_us).job.id
    lease = queue.claim(engine, "worker", now_us, SECOND_US)
    assert lease is not None
    queue.finish(engine, lease, Outcome(None), now_us - 31 * threads.DAY_US)
    running = threads.WorkerThreads(threads.WorkerConfig(engine, jobs, {}, 1, 15, retention_days, lake))
    running.start()
    until(lambda: not list(jobs.iterdir()))  # the folders are removed after the jobs
    running.close()
    statuses = {job.id: job.status for job in store.list_page(engine, PROJECT, None, 50, 0)[0]}
    assert sorted(age_days[id] for id in statuses if id != idle) == left["archived"]
    assert [31 for id in statuses if id == idle and statuses[id] == "completed"] == left["completed"]
