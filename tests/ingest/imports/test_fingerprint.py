"""Fingerprint of a chunk: the checkpoints of a prefix, and the digest of the first line."""

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ingest.hotlog.ledger_store import CHECKPOINT
from ingest.imports.fingerprint import CHECKPOINT_BYTES, Fingerprint, fingerprint
from tests.ingest.formats.test_clf import line
from tests.ingest.imports.test_ledger import log_line, log_lines

LINES = [
    line(b"GET /page/%d HTTP/1.1" % number, time=b"15/Sep/2026:12:%02d:%02d +0000" % divmod(number, 60)) + b"\n"
    for number in range(1_500)
]
"""250 KB, in the order of their times."""
PIECES = (b"a", b"\n", b"b" * 40, b"c" * 70_000, b"# x\n", b"\r\n", line() + b"\n", b"".join(LINES[:500]))
contents = st.lists(st.sampled_from(PIECES)).map(b"".join)


@pytest.mark.long
@given(contents, st.lists(st.integers(0, 400_000), max_size=6), st.integers(0, 400_000))
@example(b"c" * 140_000 + b"\n", [110_000], 0)
def test_checkpoints_of_a_prefix_are_a_prefix_in_any_pieces(content: bytes, cuts: list[int], end: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ingest.imports.fingerprint.LINE_BYTES_MAX", 100_000)
        _compare(content, cuts, end)


def _compare(content: bytes, cuts: list[int], end: int) -> None:
    whole, pieces, prefix = Fingerprint(), Fingerprint(), Fingerprint()
    whole.update(content)
    for begin, stop in itertools.pairwise([0, *sorted(cuts), len(content)]):
        pieces = pieces.copy()
        pieces.update(content[begin : max(begin, stop)] if begin < len(content) else b"")
    prefix.update(content[:end])
    if all(cut <= len(content) for cut in cuts):
        values = [(each.bytes, each.digest, each.checkpoints, each.first_line) for each in (whole, pieces)]
        assert values[0] == values[1]
    assert whole.checkpoints.startswith(prefix.checkpoints)
    assert not prefix.first_line or prefix.first_line == whole.first_line


def test_different_last_line_changes_only_the_last_checkpoint() -> None:
    one, other = Fingerprint(), Fingerprint()
    one.update(log_lines(0, 9))
    other.update(log_lines(0, 8) + log_line(10))
    assert one.checkpoints[: -CHECKPOINT.size] == other.checkpoints[: -CHECKPOINT.size]
    assert one.checkpoints != other.checkpoints


def test_first_line_digest_depends_on_the_first_line_after_the_headers() -> None:
    """Compare the digests by which logs are looked up: thousands of logs may have the same headers."""
    firsts = set()
    for rows in (b"", log_lines(0, 1), log_lines(0, 2), log_lines(1, 2)):
        log = Fingerprint()
        log.update(b"#Version: 1.0\n#Fields: a b\n" + rows)
        firsts.add(log.first_line)
    assert len(firsts) == 3


@pytest.mark.parametrize("number", [800, 1_495])
def test_other_lines_behind_the_first_64_kib_are_another_log(number: int) -> None:
    """Change times by an hour, a letter of a path, and the number of lines, in the middle and in the last 64 KiB."""
    before, after = LINES[:number], LINES[number:]
    log = fingerprint(b"".join(LINES))
    for other in (
        [each.replace(b":12:", b":13:") for each in after],
        [after[0].replace(b"page", b"pays"), *after[1:]],
        after[1:],
        [after[0], *after],
    ):
        changed = fingerprint(b"".join(before + other))
        assert changed.digest != log.digest
        assert changed.checkpoints[:800] == log.checkpoints[:800]
        assert changed.checkpoints != log.checkpoints or number > 1_400


def test_no_address_is_digested_behind_64_kib_or_in_two_parts() -> None:
    """Compare logs that differ in whole addresses in the middle of a long piece, or at an end of a chunk in a part."""
    text = b"".join(LINES)
    middle = CHECKPOINT_BYTES * 3 // 2
    for address in (b"192.0.2.7", b"2001:db8:", b"20%3Adb8%"):
        other = text[:middle] + text[middle:].replace(b"192.0.2.1", address, 1)
        assert fingerprint(other).digest == fingerprint(text).digest
        for part in range(1, len(address)):
            begins, ends = (LINES[0] + each[:part] for each in (b"192.0.2.1", address))
            assert fingerprint(begins).digest == fingerprint(ends).digest
            rests = (each[part:] + LINES[0][9:] for each in (b"192.0.2.1", address))
            one, two = (fingerprint(rest, starts_mid_line=True) for rest in rests)
            assert (one.digest, one.first_line, one.checkpoints) == (two.digest, two.first_line, two.checkpoints)
            assert fingerprint(LINES[0] + address).digest != fingerprint(begins).digest


def test_logs_whose_first_lines_differ_in_a_time_or_an_address_are_two_logs() -> None:
    """Compare logs of one line that begin with seconds, a day, or an address of the same length."""
    for firsts in (
        (b"1795000000.000 ", b"1795003600.500 "),
        (b"25/Nov/2026 ", b"26/Nov/2026 "),
        (b"10.0.0.1", b"10.0.9.7"),
    ):
        one, other = (fingerprint(first + LINES[0][9:]) for first in firsts)
        assert one.digest != other.digest
        assert one.first_line != other.first_line
        assert one.checkpoints != other.checkpoints
