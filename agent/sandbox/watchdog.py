"""Limits on the memory and disk space that all processes of a turn use together; the kernel limits each process alone.

The watchdog measures from outside of the sandbox: memory and free disk space every POLL_S, the size of the work tree
and the home every MEASURE_S or less often, so that it uses less than a tenth of a core.
"""

import os
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from agent.sandbox.bubblewrap import GIB, MIB, Limits

POLL_S = 0.2
MEASURE_S = 1.0
PAUSE_FACTOR = 10
"""Length of the pause after measuring the folders, as a multiple of the time that measuring took."""
DISK_RESERVE_BYTES = 512 * MIB
MEMORY_RESERVE_BYTES = 256 * MIB
"""Free disk space and memory of the machine below which a turn is stopped, even if other processes used them. The
service needs this reserve."""
ENTRY_BYTES = 4096
"""Minimum counted size of a file or folder, in bytes: millions of empty files fill a disk too."""


@dataclass(slots=True)
class Watchdog:
    """Watchdog of all processes that the current thread starts inside the `with` block."""

    folders: Sequence[Path]
    limits: Limits
    fills_disk: bool = False
    """The reason is that the folders are too large, or that the disk is full."""
    _reason: str | None = None
    _parent: int = 0
    _ends: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> "Watchdog":
        self._parent = threading.get_native_id()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        assert self._thread is not None
        self._ends.set()
        self._thread.join()

    @property
    def reason(self) -> str | None:
        """Return the reason why the turn must stop, or None. A watchdog thread that has died is a reason too."""
        assert self._thread is not None
        if self._reason is None and not self._thread.is_alive() and not self._ends.is_set():
            return "the use of memory and disk could not be measured"
        return self._reason

    def _watch(self) -> None:
        measure_at = 0.0
        while self._reason is None and not self._ends.wait(POLL_S):
            disk_reason = self._space()
            began = time.monotonic()
            if disk_reason is None and began >= measure_at:
                disk_reason = self._disk()
                took = time.monotonic() - began
                measure_at = time.monotonic() + max(MEASURE_S, took * PAUSE_FACTOR)
            self.fills_disk = disk_reason is not None
            self._reason = disk_reason or self._memory()

    def _memory(self) -> str | None:
        if _available_bytes() < MEMORY_RESERVE_BYTES:
            return f"the machine had less than {MEMORY_RESERVE_BYTES // MIB} MiB of memory left"
        if memory_bytes(self._parent) > self.limits.memory_bytes:
            return f"the agent's processes used more than {_gib(self.limits.memory_bytes)} of memory"
        return None

    def _space(self) -> str | None:
        for folder in self.folders:
            try:
                disk = os.statvfs(folder)
            except FileNotFoundError:  # removed with its job or project while the turn is stopped
                continue
            if disk.f_bavail * disk.f_frsize < DISK_RESERVE_BYTES:
                return f"the disk of {folder} has less than {DISK_RESERVE_BYTES // MIB} MiB left: make room"
        return None

    def _disk(self) -> str | None:
        used = 0
        try:
            deleted = deleted_bytes(self._parent, {folder.stat().st_dev for folder in self.folders if folder.exists()})
            for size in chain([deleted], *map(sizes, self.folders)):
                used += size
                if used > self.limits.disk_bytes:
                    return f"the agent wrote more than {_gib(self.limits.disk_bytes)} to its work tree and home"
                if self._ends.is_set():
                    return None
        except OSError as problem:
            return f"the agent created a folder that cannot be measured: {problem.strerror}"
        return None


def memory_bytes(parent: int) -> int:
    """Return the memory of all descendants of the thread `parent`, in bytes. Shared memory counts for each process."""
    return sum(_resident_bytes(pid) for pid in _descendants(Path(f"/proc/self/task/{parent}/children")))


def deleted_bytes(parent: int, devices: Collection[int]) -> int:
    """Return the size of the deleted files on these devices that descendants of the thread `parent` have open."""
    files = {}
    for pid in _descendants(Path(f"/proc/self/task/{parent}/children")):
        with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as opened:
            for entry in opened:
                with suppress(OSError):
                    file = entry.stat()
                    if file.st_nlink == 0 and file.st_dev in devices:
                        files[file.st_dev, file.st_ino] = file.st_blocks * 512
    return sum(files.values())


def _descendants(children: Path) -> Iterator[int]:
    """Yield the process ids of all descendants. An orphan is among them, as a child of the sandbox's first process."""
    pending = [children]
    while pending:
        try:
            pids = pending.pop().read_text().split()
        except OSError:
            continue
        for pid in pids:
            yield int(pid)
            with suppress(OSError):  # each thread has a file with the processes that it created
                pending += [thread / "children" for thread in Path(f"/proc/{pid}/task").iterdir()]


def _resident_bytes(pid: int) -> int:
    """Return the resident memory without pages of program files, which the kernel can drop.

    A child of this process that has not executed its program yet is a copy of this process, and has none of its own.
    """
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        status = Path(f"/proc/{pid}/status").read_text(errors="replace")  # the name of a process can be any bytes
    except OSError:
        return 0
    values = {words[0]: words[1] for line in status.splitlines() if len(words := line.split()) > 1}
    if values.get("PPid:") == str(os.getpid()) and command == Path("/proc/self/cmdline").read_bytes():
        return 0
    return sum(int(values.get(name, "0")) * 1024 for name in ("RssAnon:", "RssShmem:"))


def _available_bytes() -> int:
    """Return the available memory of the machine, in bytes. Files in tmpfs reduce it, but `memory_bytes` omits them."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 1024
    raise AssertionError("Linux has MemAvailable since 3.14")


def sizes(folder: Path) -> Iterator[int]:
    """Yield the size of each file and folder below `folder`, without following links. Raises OSError."""
    pending = [str(folder)]
    while pending:
        try:
            entries = os.scandir(pending.pop())
        except FileNotFoundError:
            continue
        with entries:
            for entry in entries:
                try:
                    stat = entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                except FileNotFoundError:
                    continue
                yield max(stat.st_blocks * 512, ENTRY_BYTES)


def _gib(size: int) -> str:
    return f"{size / GIB:g} GiB"
