"""Positions of the separators of a block: line ends, and the characters that separate the fields of a format."""

from collections.abc import Iterator
from functools import reduce
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
SEARCHED_BYTES = 256 * 1024
"""Number of bytes that are searched in one call: as many as the caches of a core can contain."""


def positions(block: bytes | memoryview, separators: bytes) -> Array:
    """Return the position of each separator, a byte of `separators`, in order."""
    characters = np.frombuffer(block, np.uint8)
    pieces = [np.array([], np.int64)]
    for start in range(0, len(block), SEARCHED_BYTES):
        piece = characters[start : start + SEARCHED_BYTES]
        pieces.append(np.flatnonzero(reduce(np.logical_or, [piece == each for each in separators])) + start)
    return np.concatenate(pieces)


def pieces_of(block: bytes, size: int) -> Iterator[memoryview]:
    """Yield the lines of a block in pieces of `size` bytes, of which each may be longer by a line."""
    start, end = 0, -1
    while end < len(block):
        end = block.find(b"\n", start + size) + 1 or len(block)
        yield memoryview(block)[start:end]
        start = end
