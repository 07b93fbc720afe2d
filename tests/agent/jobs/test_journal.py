"""Log of a job: its turns, their summary, plain text, and the tail of a turn's output."""

import pytest

from agent.jobs import journal, queue, store
from agent.jobs.journal import OUTPUT_BYTES_MAX, OUTPUT_BYTES_PER_S, Summary, Tail
from agent.jobs.queue import Outcome
from tests.agent.clock import SECOND_US, Clock
from tests.agent.conftest import PROJECT
from tests.stores.between import after_statement
from warehouse.database.pool import Pool

LEASE_US = 15 * SECOND_US


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;a title\x07text", "text"),
        ("\x1b]8;;https://a.example\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b(Bplain\x1b=", "plain"),
        ("a[0m \x1b", "a[0m \ufffd"),
        ("one\r\ntwo\tthree", "one\ntwo\tthree"),
    ],
)
def test_escape_sequences_are_removed(text: str, plain: str) -> None:
    assert journal.clean(text) == plain


def test_turns_have_their_own_entries_and_times(engine: Pool, clock: Clock) -> None:
    id = store.create(engine, PROJECT, "\n  First \x1b[1mline\x1b[0m  \nSecond line", None, clock()).job.id
    store.create(engine, PROJECT, "Another job", None, clock())
    store.message(engine, PROJECT, id, "Follow-up", None, clock.advance(5))
    lease = queue.claim(engine, "worker", clock.advance(10), LEASE_US)
    assert lease is not None
    queue.renew(engine, lease, clock.advance(1), LEASE_US, "printed")
    queue.finish(engine, lease, Outcome("it broke"), clock.advance(2))

    first, second = journal.turns(engine, id, 10)
    assert (first.number, first.state, second.number, second.state) == (1, "failed", 2, "queued")
    assert first.prompt == "\n  First line  \nSecond line"
    assert (first.started_us, first.ended_us) == (clock() - 3 * SECOND_US, clock())
    assert [(entry.kind, entry.text) for entry in first.entries] == [
        ("turn", "begins"),
        ("output", "printed"),
        ("failure", "it broke"),
    ]
    assert (second.prompt, second.started_us, second.ended_us, second.entries) == ("Follow-up", None, None, [])
    assert journal.turns(engine, id, 1, 1) == [second]
    assert journal.turns(engine, id, 1, 2) == []
    assert journal.summaries(engine, [id], clock()) == {
        id: Summary("First line", turns=2, is_running=False, worked_us=3 * SECOND_US)
    }


def test_log_of_a_job_that_is_removed_while_it_is_read_has_its_entries(engine: Pool, clock: Clock) -> None:
    id = store.create(engine, PROJECT, "First", None, clock()).job.id
    store.message(engine, PROJECT, id, "Second", None, clock())
    for _ in range(2):
        lease = queue.claim(engine, "worker", clock(), LEASE_US)
        assert lease is not None
        queue.finish(engine, lease, Outcome(None), clock())
    with after_statement(engine, "SELECT at_us", lambda: store.remove(engine, PROJECT)):
        entries, _ = journal.read(engine, id)
    assert [(entry.turn, entry.text) for entry in entries] == [(1, "begins"), (1, "ends"), (2, "begins"), (2, "ends")]
    assert journal.read(engine, id)[0] == []


def test_summary_of_a_running_turn_counts_the_time_until_now(engine: Pool, clock: Clock) -> None:
    ids = [store.create(engine, PROJECT, "x" * 300, None, clock()).job.id for _ in range(2)]
    queue.claim(engine, "worker", clock.advance(10), LEASE_US)
    line = "x" * 199 + "…"
    assert journal.summaries(engine, ids, clock.advance(7)) == {
        ids[0]: Summary(line, turns=1, is_running=True, worked_us=7 * SECOND_US),
        ids[1]: Summary(line, turns=1, is_running=False, worked_us=0),
    }
    assert journal.summaries(engine, [], clock()) == {}


def test_long_output_starts_with_the_first_whole_line_of_its_end() -> None:
    tail = Tail()
    for number in range(20_000):
        tail.add(b"line %d\n" % number)
    lines = tail.text().splitlines()
    assert (lines[0], lines[-1]) == ("[...]", "line 19999")
    assert lines[1].startswith("line ")
    assert len(tail.text()) <= OUTPUT_BYTES_MAX + len("[...]\n")


@pytest.mark.parametrize("line", ["%06d\n", "%03d€\n"], ids=["characters of one byte", "a character of three bytes"])
def test_endless_output_is_written_at_a_bounded_rate(line: str) -> None:
    """Add 64 KiB every 0.1 s, for a minute."""
    tail, written = Tail(), 0
    for tenth in range(600):
        tail.add((line % tenth).encode() * (OUTPUT_BYTES_MAX // 7))
        text = tail.unwritten(tenth / 10, is_last=False)
        if text is not None:
            written += len(text.encode())
            tail.set_written(text, tenth / 10)
    assert 0 < written <= 60 * OUTPUT_BYTES_PER_S + OUTPUT_BYTES_MAX


def test_last_output_is_written_without_a_pause() -> None:
    tail = Tail()
    tail.add(b"y\n" * OUTPUT_BYTES_MAX)
    tail.set_written(tail.text(), 10.0)
    tail.add(b"Done.\n")
    assert tail.unwritten(10.1, is_last=False) is None
    assert (tail.unwritten(10.1, is_last=True) or "").endswith("Done.\n")


def test_output_that_was_not_written_is_returned_again() -> None:
    tail = Tail()
    tail.add(b"one\n")
    assert [tail.unwritten(now_s, is_last=False) for now_s in (0.0, 0.2)] == ["one\n"] * 2
    tail.set_written("one\n", 0.2)
    assert tail.unwritten(60, is_last=False) is None
