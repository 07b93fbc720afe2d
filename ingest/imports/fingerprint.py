"""Digest of a chunk of a log, with checkpoints by which a truncated copy of the chunk is recognised.

Digests are of the lines without their addresses: see `ingest.visitors.address_free`.
"""

import hashlib
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

from xxhash import xxh3_128

from ingest.hotlog.ledger_store import CHECKPOINT
from ingest.visitors.address_free import address_free

CHECKPOINT_BYTES = 64 * 1024
"""Distance between checkpoints in bytes, except at the start of a chunk: its first CHECKPOINT_BYTES have checkpoints at
line ends that are at least CHECKPOINT_LINE_BYTES_MIN apart."""
CHECKPOINT_LINE_BYTES_MIN = 32
"""Minimum distance between checkpoints in bytes. No line of a page view is shorter. Without the minimum, a log of
empty lines would have as many checkpoints as bytes."""
SEGMENT_BYTES = 1024 * 1024
"""Bytes of lines that are digested at once; a longer line is digested in segments of this size."""
DIGEST_BYTES = 17
"""Size of a digest without addresses: 16 bytes of xxHash, and one that tells it from the digests of earlier releases.
xxHash does not resist an attacker, but a collision is of no use to the writer of a log."""
EARLIER_DIGEST_BYTES = 16
_DIGESTS: Mapping[int, Callable[[], Any]] = {DIGEST_BYTES: xxh3_128, EARLIER_DIGEST_BYTES: xxh3_128, 32: hashlib.sha256}
"""Hash functions by the size of a digest. Earlier releases digested lines with their addresses."""


class Fingerprint:
    """Incremental digest and checkpoints of a chunk.

    A checkpoint is an offset and the digest of the bytes before it. Checkpoints are at each line end of the first
    CHECKPOINT_BYTES, at least CHECKPOINT_LINE_BYTES_MIN apart, then at the first line end after each further
    CHECKPOINT_BYTES. The checkpoints of a prefix are a prefix of the checkpoints.
    """

    def __init__(self, digest_bytes: int = DIGEST_BYTES) -> None:
        self.bytes, self.digest_bytes = 0, digest_bytes
        self.checkpoints = b""
        self._hash = _DIGESTS[digest_bytes]()
        self._digested = 0
        self._rest = b""
        """The bytes after the last line end or segment, which are digested when their line is whole."""
        self._head = b""
        self._next = 0

    def update(self, data: bytes) -> None:
        self.bytes += len(data)
        self._head += data[: CHECKPOINT_BYTES - len(self._head)]
        data, begin = self._rest + data if self._rest else data, 0
        while begin < len(data):
            longest = begin + SEGMENT_BYTES
            end = data.rfind(b"\n", begin, longest) + 1 or longest
            if end > len(data):
                break
            self._digest_segment(data[begin:end])
            begin = end
        self._rest = data[begin:]

    def _digest_segment(self, data: bytes) -> None:
        text, done = memoryview(_kept(data, self.digest_bytes)), 0
        while (end := data.find(b"\n", max(done, self._next - self._digested - 1))) >= 0:
            self._hash.update(text[done : end + 1])
            done = end + 1
            offset = self._digested + done
            self.checkpoints += CHECKPOINT.pack(offset, self._hash.digest()[:8])
            self._next = offset + (CHECKPOINT_LINE_BYTES_MIN if offset < CHECKPOINT_BYTES else CHECKPOINT_BYTES)
        self._hash.update(text[done:])
        self._digested += len(data)

    @property
    def digest(self) -> bytes:
        return _digest(self._hash, self._rest, self.digest_bytes)

    @property
    def first_line(self) -> bytes:
        return digest_of_first_line(self._head, self.digest_bytes)

    def copy(self) -> "Fingerprint":
        result = copy(self)
        result._hash = self._hash.copy()
        return result


def fingerprint(data: bytes, digest_bytes: int = DIGEST_BYTES) -> Fingerprint:
    """Return the fingerprint of a whole chunk."""
    result = Fingerprint(digest_bytes)
    result.update(data)
    return result


def digest(data: bytes, digest_bytes: int) -> bytes:
    """Return the digest of at most SEGMENT_BYTES, without checkpoints."""
    return _digest(_DIGESTS[digest_bytes](), data, digest_bytes)


def digest_of_first_line(head: bytes, digest_bytes: int = DIGEST_BYTES) -> bytes:
    """Return a digest of the first line that is not a `#` header, and of the headers before it.

    Many logs share the headers. The digest is empty if that line does not end within CHECKPOINT_BYTES.
    """
    begin = 0
    while (end := head.find(b"\n", begin, CHECKPOINT_BYTES) + 1) and head.startswith(b"#", begin):
        begin = end
    return hashlib.sha256(_kept(head[:end], digest_bytes)).digest()[:8] if end else b""


def _digest(hashed: Any, rest: bytes, digest_bytes: int) -> bytes:
    result = hashed.copy()
    result.update(_kept(rest, digest_bytes))
    return bytes(result.digest()).ljust(digest_bytes, b"\0")


def _kept(data: bytes, digest_bytes: int) -> Any:
    """Return what a digest of this size is of: the data, or for the present size the data without addresses."""
    return address_free(data) if digest_bytes == DIGEST_BYTES else data
