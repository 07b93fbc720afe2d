"""Allocators of a server process, chosen such that freed memory returns to the operating system.

An import uses the same allocator for Arrow, because this allocator takes less processor time.
"""

import ctypes
import os
import sys
from collections.abc import Mapping

POOL = "ARROW_DEFAULT_MEMORY_POOL"
"""Environment variable that names the allocator of Arrow. Arrow reads it when it is imported."""
DELTA = "_RJEM_MALLOC_CONF"
"""Environment variable of the jemalloc in delta-rs, which reads it when it is imported."""
CHOICES = {POOL: "jemalloc", DELTA: "narenas:2,dirty_decay_ms:0"}
"""Variables of the environment that choose and configure allocators.

delta-rs returns freed memory at once: https://jemalloc.net/jemalloc.3.html#opt.dirty_decay_ms. By default it retains
the memory for 10 s, and longer in a process that does not allocate: after five loads of 100,000 hits 440 MiB were
resident instead of 320. A load takes 8 % more processor time.
"""
ARROW = "JE_ARROW_MALLOC_CONF"
"""Environment variable of the jemalloc in Arrow, which reads it when it is imported."""
CHOICES_OF_IMPORT = CHOICES | {ARROW: "dirty_decay_ms:10000,muzzy_decay_ms:10000"}
"""CHOICES for an import, in which Arrow returns freed memory to the operating system after 10 s and not 1 s: the next
block needs it again."""
ARENAS_MAX = 2
"""Maximum number of glibc's heaps, which the threads share. By default each thread has a heap that never shrinks."""
MAPPED_BYTES = 256 * 1024
"""Size from which glibc maps memory that is unmapped when it is freed. By default the size grows up to 32 MiB."""
TRIM_BYTES = 8 * 1024 * 1024
"""Size of the free end of a heap above which glibc returns the end to the operating system. With the default of 128 KiB
beside a fixed MAPPED_BYTES, each post of 1,000 hits released and requested its memory again: 8.3 µs of processor time a
hit, and 7.3 µs with 8 MiB."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
"""Options of `mallopt`: https://man7.org/linux/man-pages/man3/mallopt.3.html"""


def choose_allocators(choices: Mapping[str, str] = CHOICES) -> None:
    """Set the choices in this process, before Arrow and delta-rs are imported, unless the environment has others.

    mimalloc, Arrow's default, retains the memory of threads that have ended. A choice in Python after the import does
    not reach all of Arrow: with it a server used 90 to 110 MiB more after the pages of 100M hits.

    An import of 1,000,000 lines takes 2.7 s of processor time with jemalloc, 0.4 s of them in the kernel, and 3.1 s and
    0.8 s with mimalloc.
    """
    if sys.platform == "linux":  # other builds of Arrow have no jemalloc
        for name, value in choices.items():
            os.environ.setdefault(name, value)


def limit_heaps() -> None:
    """Limit the amount of freed memory that glibc retains. Does nothing with another C library."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, ARENAS_MAX)
        mallopt(_M_MMAP_THRESHOLD, MAPPED_BYTES)
        mallopt(_M_TRIM_THRESHOLD, TRIM_BYTES)
