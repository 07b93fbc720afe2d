"""Digest of a chunk of a log, with checkpoints by which a truncated copy of the chunk is recognised."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from xxhash import xxh3_128

from ingest.hotlog.ledger_store import CHECKPOINT

CHECKPOINT_BYTES = 64 * 1024
"""Distance between checkpoints in bytes, except at the start of a chunk: its first CHECKPOINT_BYTES have checkpoints at
line ends that are at least CHECKPOINT_LINE_BYTES_MIN apart."""
CHECKPOINT_LINE_BYTES_MIN = 32
"""Minimum distance between checkpoints in bytes. No line of a page view is shorter. Without the minimum, a log of
empty lines would have as many checkpoints as bytes."""
DIGEST_BYTES = 16
_DIGESTS: Mapping[int, Callable[[bytes], Any]] = {DIGEST_BYTES: xxh3_128, 32: hashlib.sha256}
"""Hash functions by the size of their digest in bytes. Older ledgers have SHA-256 digests. New chunks use xxHash, which
is 20 times as fast. xxHash does not resist an attacker, but a collision is of no use to the writer of a log."""


class Fingerprint:
    """Incremental digest and checkpoints of a chunk.

    A checkpoint is an offset and the digest of the bytes before it. Checkpoints are at each line end of the first
    CHECKPOINT_BYTES, at least CHECKPOINT_LINE_BYTES_MIN apart, then at the first line end after each further
    CHECKPOINT_BYTES. The checkpoints of a prefix are a prefix of the checkpoints.
    """

    def __init__(self, digest_bytes: int = DIGEST_BYTES) -> None:
        self.bytes = 0
        self.checkpoints = b""
        self._hash = _DIGESTS[digest_bytes](b"")
        self._head = b""
        self._next = 0

    def update(self, data: bytes) -> None:
        done = 0
        while (end := data.find(b"\n", max(done, self._next - self.bytes - 1))) >= 0:
            self._hash.update(memoryview(data)[done : end + 1])
            done = end + 1
            offset = self.bytes + done
            self.checkpoints += CHECKPOINT.pack(offset, self._hash.digest()[:8])
            self._next = offset + (CHECKPOINT_LINE_BYTES_MIN if offset < CHECKPOINT_BYTES else CHECKPOINT_BYTES)
        self._hash.update(memoryview(data)[done:])
        self._head += data[: CHECKPOINT_BYTES - len(self._head)]
        self.bytes += len(data)

    @property
    def digest(self) -> bytes:
        return bytes(self._hash.digest())

    @property
    def first_line(self) -> bytes:
        """Return the digest of the first line: see `digest_of_first_line`."""
        return digest_of_first_line(self._head)

    def copy(self) -> "Fingerprint":
        copy = Fingerprint()
        copy.bytes, copy.checkpoints, copy._hash, copy._next = (
            self.bytes,
            self.checkpoints,
            self._hash.copy(),
            self._next,
        )
        copy._head = self._head
        return copy


def fingerprint(data: bytes, digest_bytes: int = DIGEST_BYTES) -> Fingerprint:
    """Return the fingerprint of a whole chunk."""
    result = Fingerprint(digest_bytes)
    result.update(data)
    return result


def digest(data: bytes, digest_bytes: int) -> bytes:
    """Return the digest of a whole chunk, without checkpoints."""
    return bytes(_DIGESTS[digest_bytes](data).digest())


def digest_of_first_line(head: bytes) -> bytes:
    """Return a digest of the first line that is not a `#` header, and of the headers before it.

    Many logs share the headers. The digest is empty if that line does not end within CHECKPOINT_BYTES.
    """
    begin = 0
    while (end := head.find(b"\n", begin, CHECKPOINT_BYTES) + 1) and head.startswith(b"#", begin):
        begin = end
    return hashlib.sha256(head[:end]).digest()[:8] if end else b""
