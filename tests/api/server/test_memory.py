"""Allocators of a server process and of an import."""

import os
import subprocess
import sys

import pytest

from api.server import memory

DECAY = """
from api.cli.main import ALLOCATORS, Commands
from api.server import memory
ALLOCATORS[{command!r}] = {{
    **ALLOCATORS[{command!r}],
    memory.ARROW: ALLOCATORS[{command!r}].get(memory.ARROW, "abort:false") + ",stats_print:true",
}}
Commands().get_command(None, {command!r})
import pyarrow
print(pyarrow.default_memory_pool().backend_name)
pyarrow.array(range(1000))
"""
DELTA = """
from api.server import memory
memory.CHOICES[memory.DELTA] += ",stats_print:true"
{call}
import deltalake
"""
LIBC = """
import ctypes
from api.server import memory
class Info(ctypes.Structure):
    _fields_ = [*((name, ctypes.c_size_t) for name in ("arena", "free", "fast", "hblks")), ("rest", ctypes.c_char * 48)]
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.mallinfo2.restype = ctypes.c_void_p, Info
libc.malloc.argtypes, libc.free.argtypes = [ctypes.c_size_t], [ctypes.c_void_p]
"""
HEAPS = f"""{LIBC}
def mapped():
    libc.free(libc.malloc(16 << 20))
    before = libc.mallinfo2().hblks
    libc.malloc(memory.MAPPED_BYTES)
    return libc.mallinfo2().hblks - before
def is_returned():
    blocks = [libc.malloc(200_000) for _ in range(20)]
    size = libc.mallinfo2().arena
    for block in blocks:
        libc.free(block)
    return (size - libc.mallinfo2().arena) > 1_000_000
print(mapped())
memory.limit_heaps()
print(mapped(), is_returned())
libc.mallopt(-1, 128 << 10)
print(is_returned())
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if name not in memory.CHOICES_OF_IMPORT}
    return subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="other builds of Arrow have no jemalloc")
@pytest.mark.parametrize(("command", "decay_ms"), [("import", 10_000), ("serve", 1_000)])
def test_arrow_uses_jemalloc_which_reuses_memory_for_longer_in_an_import_than_in_a_server(
    command: str, decay_ms: int
) -> None:
    done = run(DECAY.format(command=command))
    assert done.stdout == "jemalloc\n"
    assert [line.split()[1] for line in done.stderr.splitlines() if "opt.dirty_decay_ms" in line] == [str(decay_ms)]


@pytest.mark.skipif(sys.platform != "linux", reason="other builds of Arrow have no jemalloc")
def test_allocator_of_the_environment_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(memory.POOL, "system")
    memory.choose_allocators()
    assert os.environ[memory.POOL] == "system"


@pytest.mark.skipif(sys.platform != "linux", reason="other builds of delta-rs have no jemalloc")
@pytest.mark.parametrize(("call", "is_printed"), [("memory.choose_allocators()", True), ("", False)])
def test_delta_returns_freed_memory_at_once(call: str, is_printed: bool) -> None:
    """Read the options that jemalloc prints at the end of the process, because the same variable asks for it."""
    assert ("opt.dirty_decay_ms: 0 " in run(DELTA.format(call=call)).stderr) == is_printed


@pytest.mark.skipif(sys.platform != "linux", reason="needs glibc")
def test_memory_is_mapped_after_larger_memory_was_freed_and_the_heap_retains_the_memory_of_a_large_post() -> None:
    """Check limits that by default glibc changes: it maps only memory that is larger than all that was freed."""
    assert run(HEAPS).stdout == "0\n1 False\nTrue\n"
