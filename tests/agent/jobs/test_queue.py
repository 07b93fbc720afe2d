"""The lease table: each turn is worked on by one worker at a time, in order, and comes to an end."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa

from agent.errors import LeaseLost
from agent.jobs import journal, queue, store
from agent.jobs.queue import Earlier, Lease, Outcome
from agent.jobs.tables import TURNS
from tests.agent.clock import SECOND_US, Clock
from tests.agent.conftest import PROJECT

LEASE_US = 10 * SECOND_US


def create(engine: sa.Engine, clock: Clock, prompt: str = "Mend it") -> str:
    return store.create(engine, PROJECT, prompt, None, clock.turn(0.001)).job.id


def claim(engine: sa.Engine, clock: Clock, owner: str = "worker") -> Lease | None:
    return queue.claim(engine, owner, clock(), LEASE_US)


def claimed(engine: sa.Engine, clock: Clock, owner: str = "worker") -> Lease:
    lease = claim(engine, clock, owner)
    assert lease is not None
    return lease


def test_the_turn_that_has_waited_longest_comes_first_and_to_one_alone(engine: sa.Engine, clock: Clock) -> None:
    made = [create(engine, clock) for _ in range(3)]
    assert [claimed(engine, clock).job.id for _ in range(3)] == made
    assert claim(engine, clock) is None


def test_many_workers_share_the_turns_without_doing_one_twice(engine: sa.Engine, clock: Clock) -> None:
    made = [create(engine, clock) for _ in range(40)]
    begin = threading.Barrier(8)

    def work(worker: int) -> list[str]:
        begin.wait()
        found = []
        while (lease := claim(engine, clock, f"worker {worker}")) is not None:
            found.append(lease.job.id)
            queue.finish(engine, lease, Outcome(None), clock())
        return found

    with ThreadPoolExecutor(8) as pool:
        done = Counter(id for found in pool.map(work, range(8)) for id in found)
    assert done == Counter(made)


def test_a_follow_up_waits_for_the_turn_before_it(engine: sa.Engine, clock: Clock) -> None:
    id = create(engine, clock)
    store.message(engine, PROJECT, id, "More", None, clock())
    first = claimed(engine, clock)
    assert claim(engine, clock) is None
    queue.finish(engine, first, Outcome(None), clock())
    assert store.find(engine, PROJECT, id).status == "active"
    second = claimed(engine, clock)
    assert (second.prompt, list(second.history)) == ("More", [Earlier("Mend it", is_kept=True)])
    queue.finish(engine, second, Outcome(None), clock())
    assert store.find(engine, PROJECT, id).status == "completed"


def test_after_a_failed_turn_the_next_goes_on(engine: sa.Engine, clock: Clock) -> None:
    id = create(engine, clock)
    store.message(engine, PROJECT, id, "More", None, clock())
    queue.finish(engine, claimed(engine, clock), Outcome("it broke"), clock())
    assert store.find(engine, PROJECT, id).status == "active"
    queue.finish(engine, claimed(engine, clock), Outcome(None), clock())
    assert store.find(engine, PROJECT, id).status == "completed"
    assert store.find(engine, PROJECT, id).reason is None


def test_a_silent_worker_loses_its_turn_when_its_lease_is_over(engine: sa.Engine, clock: Clock) -> None:
    create(engine, clock)
    silent = claimed(engine, clock, "silent")
    clock.us += LEASE_US - 1
    assert claim(engine, clock, "next") is None
    clock.us += 1
    taken = claimed(engine, clock, "next")
    assert (taken.turn, taken.attempt) == (silent.turn, 2)


def test_a_renewed_lease_holds(engine: sa.Engine, clock: Clock) -> None:
    create(engine, clock)
    lease = claimed(engine, clock)
    for _ in range(3):
        clock.us += LEASE_US - 1
        queue.renew(engine, lease, clock(), LEASE_US)
        assert claim(engine, clock, "next") is None


@pytest.mark.parametrize("by", ["take-over", "cancel", "deletion"])
def test_whoever_has_lost_a_turn_changes_nothing_any_more(engine: sa.Engine, clock: Clock, by: str) -> None:
    id = create(engine, clock)
    lost = claimed(engine, clock, "lost")
    if by == "take-over":
        clock.us += LEASE_US
        claimed(engine, clock, "next")
    elif by == "cancel":
        store.cancel(engine, PROJECT, id, clock())
    else:
        from warehouse.control import projects  # noqa: PLC0415  # of this case alone

        projects.delete(engine, PROJECT)
    before = journal.read(engine, id).entries
    for change in (
        lambda: queue.renew(engine, lost, clock(), LEASE_US, "output"),
        lambda: queue.finish_step(engine, lost, "run", {"session": "s"}, "ran", clock()),
        lambda: queue.begin_again(engine, lost),
        lambda: queue.finish(engine, lost, Outcome(None, "https://git.example/pull/1"), clock()),
        lambda: queue.release(engine, lost),
    ):
        with pytest.raises(LeaseLost):
            change()
    assert journal.read(engine, id).entries == before
    if by != "deletion":
        job = store.find(engine, PROJECT, id)
        assert (job.status, job.pull_request, job.session) == ("failed" if by == "cancel" else "active", None, None)


def test_a_worker_that_claims_its_own_lost_turn_again_is_not_taken_for_the_first(
    engine: sa.Engine, clock: Clock
) -> None:
    create(engine, clock)
    lost = claimed(engine, clock)
    clock.us += LEASE_US
    taken = claimed(engine, clock)
    with pytest.raises(LeaseLost):
        queue.renew(engine, lost, clock(), LEASE_US)
    queue.renew(engine, taken, clock(), LEASE_US)


def test_a_turn_whose_workers_die_three_times_fails_its_job(engine: sa.Engine, clock: Clock) -> None:
    id = create(engine, clock)
    for attempt in (1, 2, 3):
        assert claimed(engine, clock).attempt == attempt
        clock.us += LEASE_US
    assert claim(engine, clock) is None
    job = store.find(engine, PROJECT, id)
    assert job.status == "failed"
    assert "ended in the middle of it 3 times" in str(job.reason)


def test_a_turn_put_back_has_not_been_tried(engine: sa.Engine, clock: Clock) -> None:
    create(engine, clock)
    for _ in range(5):
        lease = claimed(engine, clock)
        assert lease.attempt == 1
        queue.release(engine, lease)


def test_finished_steps_reach_the_worker_that_takes_over(engine: sa.Engine, clock: Clock) -> None:
    create(engine, clock)
    lease = queue.finish_step(engine, claimed(engine, clock), "check out", {"commit": "abc"}, "checked out", clock())
    lease = queue.finish_step(engine, lease, "run", {"session": "s-1"}, "ran", clock())
    clock.us += LEASE_US
    taken = claimed(engine, clock)
    assert taken.steps == {"check out": {"commit": "abc"}, "run": {"session": "s-1"}}
    assert taken.job.session == "s-1"
    assert queue.begin_again(engine, taken).steps == {}


def test_a_step_that_is_noted_again_as_the_answer_was_lost_is_told_once(engine: sa.Engine, clock: Clock) -> None:
    id = create(engine, clock)
    lease = claimed(engine, clock)
    noted = [queue.finish_step(engine, lease, "run", {"session": "s-1"}, "ran", clock()) for _ in range(2)]
    assert noted[0] == noted[1]
    assert [entry.text for entry in journal.read(engine, id).entries] == ["begins", "ran"]
    lease = queue.begin_again(engine, noted[1])
    queue.finish_step(engine, lease, "run", {"session": "s-2"}, "ran again", clock())
    assert [entry.text for entry in journal.read(engine, id).entries] == ["begins", "ran", "ran again"]


def test_the_pull_request_of_an_earlier_turn_stays(engine: sa.Engine, clock: Clock) -> None:
    id = create(engine, clock)
    queue.finish(engine, claimed(engine, clock), Outcome(None, "https://git.example/pull/1"), clock())
    store.message(engine, PROJECT, id, "More", None, clock())
    queue.finish(engine, claimed(engine, clock), Outcome("it broke"), clock())
    assert store.find(engine, PROJECT, id).pull_request == "https://git.example/pull/1"


def test_the_log_tells_what_happened_in_order(engine: sa.Engine, clock: Clock) -> None:
    id = create(engine, clock)
    store.message(engine, PROJECT, id, "More", None, clock())
    lease = claimed(engine, clock)
    queue.renew(engine, lease, clock(), LEASE_US, "one")
    lease = queue.finish_step(engine, lease, "run", {}, "ran", clock())
    queue.renew(engine, lease, clock(), LEASE_US, "one\ntwo")
    queue.finish(engine, lease, Outcome("it broke"), clock())
    queue.finish(engine, claimed(engine, clock), Outcome(None), clock())
    told = [(entry.turn, entry.kind, entry.text) for entry in journal.read(engine, id).entries]
    assert told == [
        (1, "turn", "begins"),
        (1, "output", "one\ntwo"),
        (1, "step", "ran"),
        (1, "failure", "it broke"),
        (2, "turn", "begins"),
        (2, "turn", "ends"),
    ]


def test_queue_stats_count_jobs_by_status_and_return_the_age_of_the_oldest_queued_turn(
    engine: sa.Engine, clock: Clock
) -> None:
    for _ in range(3):
        create(engine, clock)
    queue.finish(engine, claimed(engine, clock), Outcome(None), clock())
    claimed(engine, clock)
    stats = queue.queue_stats(engine, clock.turn(5))
    assert stats.jobs == {"completed": 1, "active": 2}
    assert stats.waiting_s == pytest.approx(5, abs=0.01)


def test_a_turn_that_failed_is_history_that_was_not_kept_unless_it_was_pushed(engine: sa.Engine, clock: Clock) -> None:
    id = create(engine, clock)
    queue.finish(engine, claimed(engine, clock), Outcome("it broke"), clock())
    store.message(engine, PROJECT, id, "Two", None, clock())
    lease = queue.finish_step(engine, claimed(engine, clock), "push", {}, "pushed", clock())
    queue.finish(engine, lease, Outcome("no pull request"), clock())
    store.message(engine, PROJECT, id, "Three", None, clock())
    assert list(claimed(engine, clock).history) == [Earlier("Mend it", is_kept=False), Earlier("Two", is_kept=True)]


def test_a_pull_request_is_known_to_the_job_though_its_turn_does_not_end_well(engine: sa.Engine, clock: Clock) -> None:
    id, url = create(engine, clock), "https://git.example/pull/1"
    queue.finish_step(engine, claimed(engine, clock), "pull request", {"url": url}, "opened", clock())
    assert store.cancel(engine, PROJECT, id, clock()).pull_request == url


def test_whatever_an_agent_says_can_be_stored_and_shown(engine: sa.Engine, clock: Clock) -> None:
    id = create(engine, clock)
    lease = claimed(engine, clock)
    odd, plain = "a\0b \ud83d \x1b[2J\tc\r\nd", "a\ufffdb \ufffd \ufffd[2J\tc\nd"
    queue.renew(engine, lease, clock(), LEASE_US, odd)
    lease = queue.finish_step(engine, lease, "run", {}, odd, clock())
    queue.finish(engine, lease, Outcome(odd), clock())
    assert store.find(engine, PROJECT, id).reason == plain
    assert [entry.text for entry in journal.read(engine, id).entries] == ["begins", plain, plain, plain]


def test_a_turn_that_was_renewed_since_it_was_looked_at_is_not_taken(engine: sa.Engine, clock: Clock) -> None:
    create(engine, clock)
    claimed(engine, clock)
    with engine.connect() as connection:
        row = connection.execute(TURNS.select()).one()
    clock.us += LEASE_US
    queue.renew(engine, queue.Lease(**_of(row, engine)), clock(), LEASE_US)
    with engine.begin() as connection:
        assert not queue._take(connection, row, queue._lease(connection, row, "late", clock()), clock() + LEASE_US)


def _of(row: sa.Row[Any], engine: sa.Engine) -> dict[str, Any]:
    """The lease that a row of the table is."""
    job = store.find(engine, PROJECT, row.job_id)
    known = {"turn": row.id, "job": job, "prompt": row.prompt, "history": (), "owner": row.owner}
    return {**known, "attempt": row.attempt, "steps": row.steps, "started_us": row.started_us}
