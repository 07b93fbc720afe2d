"""The folders of jobs that are put away leave the disk, whatever the agent did in them."""

import threading
from pathlib import Path

import sqlalchemy as sa

from agent import queue, store, worker
from agent.queue import Outcome
from tests.agent.clock import SECOND_US, Clock
from tests.agent.conftest import PROJECT


def test_the_folders_of_archived_and_unknown_jobs_are_swept(engine: sa.Engine, clock: Clock, tmp_path: Path) -> None:
    jobs = tmp_path / "jobs"
    made = [store.create(engine, PROJECT, "Mend it", None, clock.turn(1)).job.id for _ in range(2)]
    lease = queue.claim(engine, "worker", clock(), SECOND_US)
    assert lease is not None
    queue.finish(engine, lease, Outcome(None), clock())
    store.archive(engine, PROJECT, made[0], clock())
    for name in (*made, "unknown"):
        deep = jobs / name / "tree"
        deep.mkdir(parents=True)
        (deep / "file").touch()
        deep.chmod(0)
    worker._sweep(worker.Setup(engine, jobs, {}, 1, 10), threading.Event())
    assert [each.name for each in jobs.iterdir()] == [made[1]]
    (jobs / made[1] / "tree").chmod(0o700)
