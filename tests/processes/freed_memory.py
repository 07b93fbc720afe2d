"""Memory that was freed and is still resident, as an allocator leaves it."""

import ctypes
from pathlib import Path

BLOCKS, BLOCK_BYTES = 4_000, 8 * 1024
"""Blocks that are too small to be mapped one by one: 31 MiB."""
FREED_MIB = BLOCKS * BLOCK_BYTES / 1024**2
_LIBC = ctypes.CDLL(None)
_LIBC.malloc.restype = ctypes.c_void_p
_LIBC.malloc.argtypes = [ctypes.c_size_t]
_LIBC.free.argtypes = [ctypes.c_void_p]


def leave_freed_memory() -> None:
    """Write to blocks and free all but the last one, above which glibc does not shrink its heap."""
    blocks = [_LIBC.malloc(BLOCK_BYTES) for _ in range(BLOCKS)]
    for block in blocks:
        ctypes.memset(block, 1, BLOCK_BYTES)
    for block in blocks[:-1]:
        _LIBC.free(block)


def resident_mib() -> float:
    """Return the resident memory of this process, in MiB."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024
