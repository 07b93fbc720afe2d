"""Queue of turns: each turn is worked on by one worker at a time, in order, and ends."""

import json
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from agent.errors import LeaseLost
from agent.jobs import journal, queue, store
from agent.jobs.queue import EarlierTurn, Lease, Outcome
from agent.jobs.steps import CheckOutStep, PullRequestStep, PushStep, RunStep, Steps
from agent.jobs.tables import STATEMENTS
from tests.agent.clock import SECOND_US, Clock
from tests.agent.conftest import PROJECT
from tests.stores import sql
from warehouse.control import projects
from warehouse.database.pool import Pool

LEASE_US = 10 * SECOND_US


def create(engine: Pool, clock: Clock, prompt: str = "Fix it") -> str:
    return store.create(engine, PROJECT, prompt, None, clock.advance(0.001)).job.id


def claim(engine: Pool, clock: Clock, owner: str = "worker") -> Lease | None:
    return queue.claim(engine, owner, clock(), LEASE_US)


def claimed(engine: Pool, clock: Clock, owner: str = "worker") -> Lease:
    lease = claim(engine, clock, owner)
    assert lease is not None
    return lease


def test_turns_are_claimed_once_and_in_the_order_in_which_they_were_queued(engine: Pool, clock: Clock) -> None:
    ids = [create(engine, clock) for _ in range(3)]
    assert [claimed(engine, clock).job.id for _ in range(3)] == ids
    assert claim(engine, clock) is None


def test_eight_workers_share_the_turns_and_none_runs_twice(engine: Pool, clock: Clock) -> None:
    ids = [create(engine, clock) for _ in range(40)]
    begin = threading.Barrier(8)

    def work(worker: int) -> list[str]:
        begin.wait()
        finished = []
        while (lease := claim(engine, clock, f"worker {worker}")) is not None:
            finished.append(lease.job.id)
            queue.finish(engine, lease, Outcome(None), clock())
        return finished

    with ThreadPoolExecutor(8) as pool:
        counts = Counter(id for finished in pool.map(work, range(8)) for id in finished)
    assert counts == Counter(ids)


@pytest.mark.parametrize("reason", [None, "it broke"])
def test_follow_up_waits_for_the_earlier_turn_of_its_job(engine: Pool, clock: Clock, reason: str | None) -> None:
    id = create(engine, clock)
    store.message(engine, PROJECT, id, "More", None, clock())
    first = claimed(engine, clock)
    assert claim(engine, clock) is None
    queue.finish(engine, first, Outcome(reason), clock())
    assert store.find(engine, PROJECT, id).status == "active"
    second = claimed(engine, clock)
    assert (second.prompt, list(second.history)) == ("More", [EarlierTurn("Fix it", is_in_branch=reason is None)])
    queue.finish(engine, second, Outcome(None), clock())
    job = store.find(engine, PROJECT, id)
    assert (job.status, job.reason) == ("completed", None)


def test_turn_is_claimed_again_once_its_lease_has_expired_and_not_while_it_is_renewed(
    engine: Pool, clock: Clock
) -> None:
    create(engine, clock)
    lease = claimed(engine, clock, "silent")
    for _ in range(3):
        clock.us += LEASE_US - 1
        assert claim(engine, clock, "next") is None
        queue.renew(engine, lease, clock(), LEASE_US)
    clock.us += LEASE_US - 1
    assert claim(engine, clock, "next") is None
    clock.us += 1
    again = claimed(engine, clock, "next")
    assert (again.turn, again.attempt) == (lease.turn, 2)


@pytest.mark.parametrize("by", ["another claim", "cancel", "deletion"])
def test_worker_that_has_lost_its_turn_can_change_nothing(engine: Pool, clock: Clock, by: str) -> None:
    id = create(engine, clock)
    lost = claimed(engine, clock, "lost")
    if by == "another claim":
        clock.us += LEASE_US
        claimed(engine, clock, "next")
    elif by == "cancel":
        store.cancel(engine, PROJECT, id, clock())
    else:
        projects.delete(engine, PROJECT)
    before = journal.read(engine, id)[0]
    for change in (
        lambda: queue.renew(engine, lost, clock(), LEASE_US, "output"),
        lambda: queue.finish_step(engine, lost, RunStep("s"), "ran", clock()),
        lambda: queue.clear_steps(engine, lost),
        lambda: queue.finish(engine, lost, Outcome(None, "https://git.example/pull/1"), clock()),
        lambda: queue.release(engine, lost),
    ):
        with pytest.raises(LeaseLost):
            change()
    assert journal.read(engine, id)[0] == before
    if by != "deletion":
        job = store.find(engine, PROJECT, id)
        assert (job.status, job.pull_request, job.session) == ("failed" if by == "cancel" else "active", None, None)


def test_worker_that_claims_its_own_lost_turn_again_cannot_use_the_first_lease(engine: Pool, clock: Clock) -> None:
    create(engine, clock)
    lost = claimed(engine, clock)
    clock.us += LEASE_US
    again = claimed(engine, clock)
    with pytest.raises(LeaseLost):
        queue.renew(engine, lost, clock(), LEASE_US)
    queue.renew(engine, again, clock(), LEASE_US)


def test_job_fails_after_its_worker_died_three_times(engine: Pool, clock: Clock) -> None:
    id = create(engine, clock)
    for attempt in (1, 2, 3):
        assert claimed(engine, clock).attempt == attempt
        clock.us += LEASE_US
    assert claim(engine, clock) is None
    job = store.find(engine, PROJECT, id)
    assert job.status == "failed"
    assert "in each of 3 attempts" in str(job.reason)


def test_released_turn_does_not_count_as_an_attempt(engine: Pool, clock: Clock) -> None:
    create(engine, clock)
    for _ in range(5):
        lease = claimed(engine, clock)
        assert lease.attempt == 1
        queue.release(engine, lease)


def test_finished_steps_are_in_the_lease_of_the_next_worker(engine: Pool, clock: Clock) -> None:
    create(engine, clock)
    check_out, run = CheckOutStep("abc", follows_up=False, mark="0123"), RunStep("s-1")
    lease = queue.finish_step(engine, claimed(engine, clock), check_out, "checked out", clock())
    queue.finish_step(engine, lease, run, "ran", clock())
    clock.us += LEASE_US
    again = claimed(engine, clock)
    assert again.steps == Steps(check_out=check_out, run=run)
    assert again.job.session == "s-1"
    assert queue.clear_steps(engine, again).steps == Steps()


def test_turn_that_version_0_1_0_left_continues_at_its_next_step(engine: Pool, clock: Clock) -> None:
    """Write the row of a turn whose worker died after the commit, in the form of version 0.1.0."""
    create(engine, clock)
    claimed(engine, clock)
    stored = (
        '{"check out": {"commit": "abc", "follows_up": true, "mark": "0123"}, '
        '"run": {"session": "opencode x s-1"}, "commit": {"commit": "def"}}'
    )
    sql.run(engine, "UPDATE turns SET steps = :steps", steps=stored)
    clock.us += LEASE_US
    lease = claimed(engine, clock)
    assert lease.steps.check_out == CheckOutStep("abc", follows_up=True, mark="0123")
    assert lease.steps.run == RunStep("opencode x s-1")
    assert (lease.steps.commit is not None and lease.steps.commit.commit, lease.steps.push) == ("def", None)
    queue.finish_step(engine, lease, PushStep(), "pushed", clock())
    [written] = sql.column(engine, "SELECT CAST(steps AS TEXT) FROM turns")
    steps = json.loads(written)
    assert steps["commit"] == {"commit": "def"}
    assert steps["push"] == {}


def test_step_that_is_stored_twice_because_a_response_was_lost_is_logged_once(engine: Pool, clock: Clock) -> None:
    id = create(engine, clock)
    lease = claimed(engine, clock)
    leases = [queue.finish_step(engine, lease, RunStep("s-1"), "ran", clock()) for _ in range(2)]
    assert leases[0] == leases[1]
    assert [entry.text for entry in journal.read(engine, id)[0]] == ["begins", "ran"]
    lease = queue.clear_steps(engine, leases[1])
    queue.finish_step(engine, lease, RunStep("s-2"), "ran again", clock())
    assert [entry.text for entry in journal.read(engine, id)[0]] == ["begins", "ran", "ran again"]


def test_failed_turn_does_not_remove_the_pull_request_of_an_earlier_turn(engine: Pool, clock: Clock) -> None:
    id = create(engine, clock)
    queue.finish(engine, claimed(engine, clock), Outcome(None, "https://git.example/pull/1"), clock())
    store.message(engine, PROJECT, id, "More", None, clock())
    queue.finish(engine, claimed(engine, clock), Outcome("it broke"), clock())
    assert store.find(engine, PROJECT, id).pull_request == "https://git.example/pull/1"


def test_log_has_the_events_of_two_turns_in_order(engine: Pool, clock: Clock) -> None:
    id = create(engine, clock)
    store.message(engine, PROJECT, id, "More", None, clock())
    lease = claimed(engine, clock)
    queue.renew(engine, lease, clock(), LEASE_US, "one")
    lease = queue.finish_step(engine, lease, RunStep(None), "ran", clock())
    queue.renew(engine, lease, clock(), LEASE_US, "one\ntwo")
    queue.finish(engine, lease, Outcome("it broke"), clock())
    queue.finish(engine, claimed(engine, clock), Outcome(None), clock())
    entries = [(entry.turn, entry.kind, entry.text) for entry in journal.read(engine, id)[0]]
    assert entries == [
        (1, "turn", "begins"),
        (1, "output", "one\ntwo"),
        (1, "step", "ran"),
        (1, "failure", "it broke"),
        (2, "turn", "begins"),
        (2, "turn", "ends"),
    ]


def test_queue_stats_have_jobs_by_status_and_the_age_of_the_oldest_queued_turn(engine: Pool, clock: Clock) -> None:
    for _ in range(3):
        create(engine, clock)
    queue.finish(engine, claimed(engine, clock), Outcome(None), clock())
    claimed(engine, clock)
    stats = queue.queue_stats(engine, clock.advance(5))
    assert stats.jobs == {"completed": 1, "active": 2}
    assert stats.waiting_s == pytest.approx(5, abs=0.01)


def test_changes_of_a_failed_turn_are_in_the_branch_only_if_they_were_pushed(engine: Pool, clock: Clock) -> None:
    id = create(engine, clock)
    queue.finish(engine, claimed(engine, clock), Outcome("it broke"), clock())
    store.message(engine, PROJECT, id, "Two", None, clock())
    lease = queue.finish_step(engine, claimed(engine, clock), PushStep(), "pushed", clock())
    queue.finish(engine, lease, Outcome("no pull request"), clock())
    store.message(engine, PROJECT, id, "Three", None, clock())
    assert list(claimed(engine, clock).history) == [
        EarlierTurn("Fix it", is_in_branch=False),
        EarlierTurn("Two", is_in_branch=True),
    ]


def test_job_has_its_pull_request_even_if_the_turn_is_cancelled_afterwards(engine: Pool, clock: Clock) -> None:
    id, url = create(engine, clock), "https://git.example/pull/1"
    queue.finish_step(engine, claimed(engine, clock), PullRequestStep(url), "opened", clock())
    assert store.cancel(engine, PROJECT, id, clock()).pull_request == url


def test_any_output_of_an_agent_can_be_stored_and_shown(engine: Pool, clock: Clock) -> None:
    id = create(engine, clock)
    lease = claimed(engine, clock)
    odd, plain = "a\0b \ud83d \x1b[2J\tc\r\nd \x1b7\x1b", "a\ufffdb \ufffd \tc\nd \ufffd"
    queue.renew(engine, lease, clock(), LEASE_US, odd)
    lease = queue.finish_step(engine, lease, RunStep(None), odd, clock())
    queue.finish(engine, lease, Outcome(odd), clock())
    assert store.find(engine, PROJECT, id).reason == plain
    assert [entry.text for entry in journal.read(engine, id)[0]] == ["begins", plain, plain, plain]


def test_turn_that_was_renewed_after_it_was_read_is_not_taken(engine: Pool, clock: Clock) -> None:
    create(engine, clock)
    lease = claimed(engine, clock)
    clock.us += LEASE_US
    with engine.transaction() as connection:
        row = queue._Waiting(*STATEMENTS.run(connection, "LOCK_WAITING_TURN", {"now_us": clock()}).fetchone())
    queue.renew(engine, lease, clock(), LEASE_US)
    with engine.transaction() as connection:
        assert not queue._take(connection, row, queue._lease(connection, row, "late", clock()), clock() + LEASE_US)
