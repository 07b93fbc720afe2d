"""Fingerprint of a chunk: the checkpoints of a prefix, and the digest of the first line."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.hotlog.ledger_store import CHECKPOINT
from ingest.imports.fingerprint import Fingerprint
from tests.ingest.formats.test_clf import line
from tests.ingest.imports.test_ledger import log_line, log_lines

contents = st.lists(st.sampled_from([b"a", b"\n", b"b" * 40, b"c" * 70_000, b"# x\n", b"\r\n", line() + b"\n"])).map(
    b"".join
)


@pytest.mark.long
@given(contents, st.lists(st.integers(0, 400_000), max_size=6), st.integers(0, 400_000))
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
