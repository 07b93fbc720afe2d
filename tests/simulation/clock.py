"""The simulated clock of Python, SQLite and delta-rs: a library in C that is loaded before all others.

delta-rs reads the clock for the age of files and of removals, which a patch of Python's `time` would not reach. The
monotonic clock, which most waits use, and `gettimeofday`, which jemalloc's waits use, stay real.
"""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

BEGIN_S = 1_601_510_400
"""Time at which each episode begins: 2020-10-01. The times of files that nobody stamped are real, and far later."""
_NS = 1_000_000_000
# Without headers and libraries, a compiler alone is enough.
_SOURCE = """
struct timespec { long tv_sec, tv_nsec; };
enum { REALTIME = 0, REALTIME_COARSE = 5 };
#ifdef __x86_64__
enum { CLOCK_GETTIME = 228 };
#else
enum { CLOCK_GETTIME = 113 };
#endif
extern long syscall(long number, ...);
volatile long long simulated_ns = 0;
int clock_gettime(int id, struct timespec *at) {
    if (!simulated_ns || (id != REALTIME && id != REALTIME_COARSE))
        return syscall(CLOCK_GETTIME, id, at);
    at->tv_sec = simulated_ns / 1000000000;
    at->tv_nsec = simulated_ns % 1000000000;
    return 0;
}
"""


class Clock:
    """The clock of this process, which only `advance` moves."""

    def __init__(self, library: str) -> None:
        self._now_ns = ctypes.c_longlong.in_dll(ctypes.CDLL(library), "simulated_ns")

    def reset(self) -> None:
        self._now_ns.value = BEGIN_S * _NS

    @property
    def now_s(self) -> float:
        return self._now_ns.value / _NS

    def advance(self, seconds: float) -> None:
        self._now_ns.value += int(seconds * _NS)


def run_with_simulated_clock(arguments: list[str]) -> NoReturn:
    """Start this program again with the library. The order of sets depends on PYTHONHASHSEED, and is fixed, too."""
    folder = tempfile.mkdtemp(prefix="readership-clock-")
    source, library = Path(folder, "clock.c"), Path(folder, "clock.so")
    source.write_text(_SOURCE)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-nostdlib", "-o", library, source], check=True)
    environ = {"LD_PRELOAD": str(library), "PYTHONHASHSEED": "0", "TZ": "UTC"}
    os.execve(sys.executable, [sys.executable, "-m", "tests.simulation", *arguments], os.environ | environ)


def load() -> Clock | None:
    """Return the clock if this process was started with the library, which no child process then loads."""
    library = os.environ.get("LD_PRELOAD", "")
    if Path(library).name != "clock.so":
        return None
    del os.environ["LD_PRELOAD"]
    clock = Clock(library)
    shutil.rmtree(Path(library).parent)
    return clock
