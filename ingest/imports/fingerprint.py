"""Digest of a chunk of a log, with checkpoints by which a truncated copy of the chunk is recognised.

The digests do not single out an address for an attacker with the key. Pieces of less than CHECKPOINT_BYTES are digested
with 12 bits in place of each address: see `ingest.visitors.address_free`. Longer ones, for which this takes 12 to 16 %
of an import, are digested without the characters of addresses, except for their last line, whose time and size
distinguish two logs.
"""

import hashlib
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

import numpy as np
from xxhash import xxh3_128

from ingest.hotlog.ledger_store import CHECKPOINT
from ingest.visitors.address_free import address_free

CHECKPOINT_BYTES = 64 * 1024
"""Distance between checkpoints in bytes, except at the start of a chunk: its first CHECKPOINT_BYTES have checkpoints at
line ends that are at least CHECKPOINT_LINE_BYTES_MIN apart."""
CHECKPOINT_LINE_BYTES_MIN = 32
"""Minimum distance between checkpoints in bytes. No line of a page view is shorter. Without the minimum, a log of
empty lines would have as many checkpoints as bytes."""
LINE_BYTES_MAX = 1024 * 1024
"""Maximum number of bytes of an unfinished line that are in memory."""
DIGEST_BYTES = 17
"""Size of a digest with bits of addresses: 16 bytes of xxHash, and one that distinguishes it from earlier digests.
xxHash does not resist an attacker, but a collision is of no use to the writer of a log."""
EARLIER_DIGEST_BYTES = 16
_ADDRESS = b"0123456789abcdefABCDEF.:%"
"""Characters of addresses, also of percent-encoded ones. A chunk may begin or end inside an address."""
_DIGESTS: Mapping[int, Callable[[], Any]] = {DIGEST_BYTES: xxh3_128, EARLIER_DIGEST_BYTES: xxh3_128, 32: hashlib.sha256}
"""Hash functions by the size of a digest. Earlier releases digested lines with their addresses."""


class Fingerprint:
    """Incremental digest and checkpoints of a chunk.

    A checkpoint is an offset and the digest of the bytes before it. Checkpoints are at each line end of the first
    CHECKPOINT_BYTES, at least CHECKPOINT_LINE_BYTES_MIN apart, then at the first line end after each further
    CHECKPOINT_BYTES. The checkpoints of a prefix are a prefix of the checkpoints.
    """

    def __init__(self, digest_bytes: int = DIGEST_BYTES, *, starts_mid_line: bool = False) -> None:
        """Begin a chunk. It starts inside a line, perhaps inside an address, if the chunk before it ends there."""
        self.bytes, self.digest_bytes, self.starts_mid_line = 0, digest_bytes, starts_mid_line
        self.checkpoints = b""
        self._hash = _DIGESTS[digest_bytes]()
        self._rest = b""
        """The bytes that are not in `_hash` yet: those after the last checkpoint."""
        self._head = b""
        self._last, self._next = 0, 0
        """Offsets of the last checkpoint, and of the first byte behind which the next one can be."""

    def update(self, data: bytes) -> None:
        self._head += data[: CHECKPOINT_BYTES - len(self._head)]
        offset, done = self.bytes, 0
        self.bytes += len(data)
        while (end := data.find(b"\n", max(done, self._next - offset - 1)) + 1) > 0:
            self._digest(self._hash, self._rest + data[done:end], offset + end)
            self._rest, done, self._last = b"", end, offset + end
            self.checkpoints += CHECKPOINT.pack(self._last, self._hash.digest()[:8])
            fine = self._last < CHECKPOINT_BYTES
            self._next = self._last + (CHECKPOINT_LINE_BYTES_MIN if fine else CHECKPOINT_BYTES)
        self._rest += data[done:]
        if len(self._rest) > LINE_BYTES_MAX:
            self._digest(self._hash, self._rest, self.bytes)
            self._rest = b""

    def _digest(self, hashed: Any, data: bytes, end: int) -> None:
        """Digest what follows the last checkpoint, up to the offset `end`."""
        size = end - self._last
        if self.digest_bytes != DIGEST_BYTES:
            hashed.update(data)
        elif size < CHECKPOINT_BYTES:
            text = data.rstrip(_ADDRESS)
            hashed.update(address_free(text.lstrip(_ADDRESS) if self.starts_mid_line and not self._last else text))
        else:
            hashed.update(np.frombuffer(data, np.uint8) > ord("f"))
            if size <= LINE_BYTES_MAX:  # of a longer piece, only a part may be in memory
                hashed.update(address_free(data.rpartition(b"\n")[0].rpartition(b"\n")[2]))

    @property
    def digest(self) -> bytes:
        hashed = self._hash.copy()
        self._digest(hashed, self._rest, self.bytes)
        hashed.update(b"%d" % self.bytes if self.digest_bytes == DIGEST_BYTES else b"")
        return bytes(hashed.digest()).ljust(self.digest_bytes, b"\0")

    @property
    def first_line(self) -> bytes:
        return digest_of_first_line(self._head, self.digest_bytes, starts_mid_line=self.starts_mid_line)

    def copy(self) -> "Fingerprint":
        result = copy(self)
        result._hash = self._hash.copy()
        return result


def fingerprint(data: bytes, digest_bytes: int = DIGEST_BYTES, *, starts_mid_line: bool = False) -> Fingerprint:
    """Return the fingerprint of a whole chunk."""
    result = Fingerprint(digest_bytes, starts_mid_line=starts_mid_line)
    result.update(data)
    return result


def digest_of_first_line(head: bytes, digest_bytes: int = DIGEST_BYTES, *, starts_mid_line: bool = False) -> bytes:
    """Return a digest of the first line that is not a `#` header, and of the headers before it.

    Many logs share the headers. The digest is empty if that line does not end within CHECKPOINT_BYTES.
    """
    begin = 0
    while (end := head.find(b"\n", begin, CHECKPOINT_BYTES) + 1) and head.startswith(b"#", begin):
        begin = end
    line = head[:end]
    if digest_bytes == DIGEST_BYTES:
        line = address_free(line.lstrip(_ADDRESS) if starts_mid_line else line)
    return hashlib.sha256(line).digest()[:8] if end else b""
