"""Tail of a turn's output: its size, and the rate at which it is written to the log."""

from agent.jobs.journal import OUTPUT_BYTES_MAX, OUTPUT_BYTES_PER_S, Tail


def test_long_output_starts_with_the_first_whole_line_of_its_end() -> None:
    tail = Tail()
    for number in range(20_000):
        tail.add(b"line %d\n" % number)
    lines = tail.text().splitlines()
    assert (lines[0], lines[-1]) == ("[...]", "line 19999")
    assert lines[1].startswith("line ")
    assert len(tail.text()) <= OUTPUT_BYTES_MAX + len("[...]\n")


def test_endless_output_is_written_at_a_bounded_rate() -> None:
    """Add 64 KiB every 0.1 s, for a minute."""
    tail, written = Tail(), 0
    for tenth in range(600):
        tail.add(b"%06d\n" % tenth * (OUTPUT_BYTES_MAX // 7))
        text = tail.unwritten(tenth / 10, is_last=False)
        if text is not None:
            written += len(text)
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
