"""Allocators of a server process."""

import os
import subprocess
import sys

import pytest

from api.server import memory

POOL = """
from api.cli.main import Commands
Commands().get_command(None, "serve")
import pyarrow
print(pyarrow.default_memory_pool().backend_name)
"""
MAPPED = """
import ctypes
from api.server import memory
class Info(ctypes.Structure):
    _fields_ = [*((name, ctypes.c_size_t) for name in ("arena", "free", "fast", "hblks")), ("rest", ctypes.c_char * 48)]
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.mallinfo2.restype = ctypes.c_void_p, Info
libc.malloc.argtypes, libc.free.argtypes = [ctypes.c_size_t], [ctypes.c_void_p]
{call}
libc.free(libc.malloc(16 << 20))
before = libc.mallinfo2().hblks
libc.malloc(memory.MAPPED_BYTES)
print(libc.mallinfo2().hblks - before)
"""


def run(code: str) -> str:
    environ = {name: value for name, value in os.environ.items() if name != memory.POOL}
    return subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(sys.platform != "linux", reason="other builds of Arrow have no jemalloc")
def test_arrow_of_a_server_uses_jemalloc() -> None:
    assert run(POOL) == "jemalloc\n"


@pytest.mark.skipif(sys.platform != "linux", reason="other builds of Arrow have no jemalloc")
def test_allocator_of_the_environment_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(memory.POOL, "system")
    memory.choose_pool()
    assert os.environ[memory.POOL] == "system"


@pytest.mark.skipif(sys.platform != "linux", reason="needs glibc")
@pytest.mark.parametrize(("call", "mapped"), [("memory.limit_heaps()", 1), ("", 0)])
def test_memory_is_mapped_after_larger_memory_was_freed(call: str, mapped: int) -> None:
    """Check the size from which memory is mapped. By default glibc raises the size to that of freed memory."""
    assert run(MAPPED.format(call=call)) == f"{mapped}\n"
