"""The simulated machine: sleeps, threads, random names, and a disk that records what was synced.

`install` replaces functions of the standard library, and none of the product. It must run before the product is
imported. The disk has the model of `tests.promises.power_loss`: a file has its content only if it was synced
after the last write, a name is in its folder only if the folder was synced after it was added, and a deletion takes
effect at once. SQLite files are copied unchanged, because SQLite syncs each commit by itself.
"""

import concurrent.futures
import os
import shutil
import stat
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path, PurePath
from random import Random
from zlib import crc32

from tests.simulation import tasks
from tests.simulation.clock import Clock

SLEPT_S = 30.0
"""Time that a sleep in a task takes at least, in seconds of the monotonic clock: waits for locks then end soon."""
REAL_S = 1_700_000_000
"""Lower bound of the real clock, in seconds since 1970; the simulated clock stays below it."""
_stat, _utime, _unlink, _sleep, _monotonic = os.stat, os.utime, os.unlink, time.sleep, time.monotonic


class InlineExecutor:
    """An executor that calls each function at once, so that the order of calls is fixed."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def submit(self, call: Callable[..., object], *arguments: object, **options: object) -> "Future[object]":
        future: Future[object] = Future()
        try:
            future.set_result(call(*arguments, **options))
        except Exception as error:  # noqa: BLE001  # raised by `result`
            future.set_exception(error)
        return future

    def map(self, call: Callable[..., object], *iterables: object) -> Iterator[object]:
        return iter([call(*arguments) for arguments in zip(*iterables, strict=False)])  # type: ignore[call-overload]

    def shutdown(self, **_: object) -> None: ...

    def __enter__(self) -> "InlineExecutor":
        return self

    def __exit__(self, *_: object) -> None: ...


class Machine:
    """State of the replaced functions."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.names = clock, Random(0)
        self.slept_s = 0.0
        self._synced: dict[int, tuple[int, int]] = {}
        """Size and time of the last write of each synced file, by its inode."""
        self._named: dict[str, set[str]] = {}
        """Names that the last sync of each folder has written."""

    def install(self) -> None:
        concurrent.futures.ThreadPoolExecutor = InlineExecutor  # type: ignore[misc,assignment]
        os.fsync, os.utime, os.unlink, os.remove = self._fsync, self._set_time, self._remove, self._remove  # type: ignore[assignment]
        time.sleep, time.monotonic = self._sleep, lambda: _monotonic() + self.slept_s
        PurePath.__hash__ = lambda path: hash(_label(path))  # type: ignore[method-assign]  # the order of sets
        uuid.uuid4 = lambda: uuid.UUID(int=self.names.getrandbits(128), version=4)

    def reset(self, seed: int) -> None:
        self.clock.reset()
        self.names, self.slept_s, self._synced, self._named = Random(seed), 0.0, {}, {}

    def advance(self, seconds: float, *folders: Path) -> None:
        """Move the clock, and first give all files that were written since the last call the present time."""
        for folder in folders:
            for path in _walk(folder):
                status = _stat(path)
                if status.st_mtime >= REAL_S:
                    self._set_time(path, (self.clock.now_s, self.clock.now_s))
        self.clock.advance(seconds)

    def sync_all(self, folder: Path) -> None:
        """Record everything in a folder as synced."""
        for path in _walk(folder):
            self._sync(path, _stat(path))

    def copy(self, folder: Path, new: Path, lost: Random | None) -> None:
        """Copy a folder as it is after the crash of its processes; after a power loss with `lost`, which chooses.

        In half of the power losses, everything that was not synced is lost. In the others, each file is lost, empty,
        cut or whole by chance: by its content, because delta-rs chooses names without the seed.
        """
        mercy = 0 if lost is None or lost.random() < 0.5 else lost.randrange(1, 1 << 30)
        for path in _walk(folder):
            target = new / path.relative_to(folder)
            is_sqlite, fate = "sqlite" in path.name, crc32(_content(path), mercy) % 4
            is_kept = is_sqlite or path == folder or self._is_named(path) or (mercy and fate)
            if lost is not None and not is_kept:
                continue
            if not target.parent.exists():  # its folder is lost
                continue
            if path.is_dir():
                target.mkdir(exist_ok=True)
                self._named[str(target)] = set(self._named.get(str(path), ()))
                continue
            shutil.copy2(path, target)
            if self._is_synced(path):
                status = _stat(target)
                self._synced[status.st_ino] = status.st_size, status.st_mtime_ns
            elif lost is not None and not is_sqlite and not (mercy and fate == 3):
                os.truncate(target, target.stat().st_size // 2 if mercy and fate == 1 else 0)
        if lost is not None:
            self.sync_all(new)

    def _is_named(self, path: Path) -> bool:
        return path.name in self._named.get(str(path.parent), ())

    def _is_synced(self, path: Path) -> bool:
        status = _stat(path)
        return self._synced.get(status.st_ino) == (status.st_size, status.st_mtime_ns)

    def _sync(self, path: Path, status: os.stat_result) -> None:
        if stat.S_ISDIR(status.st_mode):
            self._named[str(path)] = set(os.listdir(path))  # noqa: PTH208
        else:
            self._synced[status.st_ino] = status.st_size, status.st_mtime_ns

    def _fsync(self, handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        tasks.pause(f"sync of {_label(path)}")
        self._sync(path, os.fstat(handle))

    def _set_time(self, path: Path | str, *times: object, **options: object) -> None:
        was_synced = self._is_synced(Path(path))
        _utime(path, *times, **options)  # type: ignore[arg-type]
        if was_synced:
            self._sync(Path(path), _stat(path))

    def _remove(self, path: Path | str, **options: object) -> None:
        tasks.require_alive()  # the exception of a kill runs `finally` blocks, which a killed process does not
        _unlink(path, **options)  # type: ignore[arg-type]

    def _sleep(self, seconds: float) -> None:
        if tasks.current() is None:
            _sleep(seconds)
            return
        self.slept_s += max(seconds, SLEPT_S)
        tasks.pause("sleep")


def _walk(folder: Path) -> Iterator[Path]:
    """Yield the files and folders below a folder: a folder before its entries, which are in the order of content."""
    yield folder
    for path in sorted(folder.iterdir(), key=lambda each: (_label(each), each.name)):
        if path.is_dir():
            yield from _walk(path)
        else:
            yield path


def _label(path: PurePath) -> str:
    """Return the path of a file in the folder of the episode, without the random part of its name."""
    folder = str(path.parent).rpartition("readership-simulation-")[2].partition("/")[2]
    return f"{folder}/{path.name if len(path.name) < 32 else path.name[:6] + path.suffix}"


def _content(path: Path) -> bytes:
    """Return what chooses the fate of a file: its content, or for the log of a table, which has times, its name."""
    is_fixed = path.suffix == ".parquet" and path.parent.name != "_delta_log"
    return path.read_bytes() if is_fixed else path.name.encode()
