"""Concurrent messages, cancels and turns of one job: it ends in one state, and none of its prompts is lost."""

import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from agent.errors import JobNotActive, LeaseLost
from agent.jobs import configuration, queue, store
from agent.jobs.queue import Outcome
from agent.jobs.steps import RunStep
from agent.jobs.store import CANCELLED
from tests.agent.clock import HOUR_S, SECOND_US, Clock
from tests.agent.conftest import PROJECT
from tests.rounds import rounds
from tests.stores import sql
from warehouse.database.pool import Pool

SEED = 20261121
ROUNDS = rounds(15)
LEASE_US = 10 * SECOND_US
MESSAGES, CANCELS = 4, 3
FAILURE = "it broke"


class Round:
    """Threads that use one job: two workers, two senders of messages, one that cancels. No lease expires."""

    def __init__(self, engine: Pool, now_us: int, seed: int) -> None:
        self.engine, self.now_us, self.chance = engine, now_us, random.Random(seed)
        self.id = store.create(engine, PROJECT, "0", None, now_us).job.id
        self.finished: Counter[int] = Counter()
        self.running_most = 0
        self.begin = threading.Barrier(5)
        self.take((None,))
        self.queue()
        self.take((FAILURE,))
        self.queue()
        store.cancel(engine, PROJECT, self.id, now_us)
        self.queue()

    def queue(self) -> None:
        store.message(self.engine, PROJECT, self.id, "0", None, self.now_us)

    def run(self, pool: ThreadPoolExecutor) -> None:
        parts: list[Callable[[], None]] = [self.work, self.work, self.send, self.send, self.cancel]
        for each in [pool.submit(self.at_once, part) for part in parts]:
            each.result()
        while self.take():
            pass

    def at_once(self, part: Callable[[], None]) -> None:
        self.begin.wait()
        part()

    def work(self) -> None:
        for _ in range(4 * MESSAGES):
            self.take()

    def take(self, reasons: Sequence[str | None] = (None, FAILURE)) -> bool:
        lease = queue.claim(self.engine, f"worker {threading.get_ident()}", self.now_us, LEASE_US)
        if lease is None:
            return False
        running = "SELECT count(*) FROM turns WHERE job_id = :id AND state = 'running'"
        self.running_most = max(self.running_most, *sql.column(self.engine, running, id=self.id))
        with suppress(LeaseLost):
            lease = queue.finish_step(self.engine, lease, RunStep("s"), "ran", self.now_us)
            reason = self.chance.choice(reasons)
            queue.finish(self.engine, lease, Outcome(reason), self.now_us)
            self.finished[lease.turn] += 1
        return True

    def send(self) -> None:
        for number in range(MESSAGES):
            store.message(self.engine, PROJECT, self.id, str(number), None, self.now_us)

    def cancel(self) -> None:
        for _ in range(CANCELS):
            with suppress(JobNotActive):
                store.cancel(self.engine, PROJECT, self.id, self.now_us)
                threading.Event().wait(self.chance.random() / 100)


@pytest.mark.long
def test_each_prompt_is_run_or_cancelled_and_the_job_ends_like_its_last_turn(engine: Pool, clock: Clock) -> None:
    with engine.connect() as connection:
        known = configuration.load(connection, PROJECT)
    config = configuration.changed(known, {"webhook": "http://127.0.0.1:1", "webhook_secret": "env:HOOK"})
    configuration.store(engine, PROJECT, config)
    with ThreadPoolExecutor(5) as pool:
        for number in range(ROUNDS):
            one = Round(engine, clock.advance(2 * HOUR_S), SEED + number)
            one.run(pool)
            _check(one)


def _check(one: Round) -> None:
    """Check the end of the job and its turns."""
    turns = sql.rows(one.engine, "SELECT id, state FROM turns WHERE job_id = :id ORDER BY id", id=one.id)
    bodies = "SELECT body FROM webhook_deliveries WHERE job_id = :id ORDER BY id"
    last_message = sql.column(one.engine, bodies, id=one.id)[-1]
    states: dict[int, str] = dict(turns)
    assert len(turns) == 4 + 2 * MESSAGES, "each accepted message has a turn"
    assert [state for _, state in turns[:3]] == ["done", "failed", "cancelled"], "before the threads begin"
    assert one.running_most <= 1, "two turns at once"
    assert one.finished == Counter(id for id, state in states.items() if state in ("done", "failed"))
    assert set(states.values()) <= {"done", "failed", "cancelled"}
    job = store.find(one.engine, PROJECT, one.id)
    expected = {"done": ("completed", None), "failed": ("failed", FAILURE), "cancelled": ("failed", CANCELLED)}
    assert (job.status, job.reason) == expected[turns[-1][1]]
    assert f'"type": "job.{job.status}"' in last_message
