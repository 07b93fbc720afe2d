"""Simulated power losses: a child process runs under strace, and everything that it never synced is removed.

The model is the worst case that POSIX allows. A file has its content only if it was synced after the last write to it.
A name is in its folder only if the folder was synced after the name was added. A deletion takes effect at once.
Files of SQLite are copied unchanged: SQLite syncs each commit, and recognises uncommitted data by itself.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests import programs

ROOT = Path(__file__).parents[2]
CALLS = (
    "open,openat,creat,mkdir,mkdirat,write,pwrite64,writev,pwritev,pwritev2,ftruncate,truncate,fsync,fdatasync,"
    "rename,renameat,renameat2,link,linkat,unlink,unlinkat,access"
)
DYING = """
import itertools, os, signal
count, fsync = itertools.count(1), os.fsync

def die_at(handle):
    if next(count) == {}:
        os.kill(os.getpid(), signal.SIGKILL)
    fsync(handle)

os.fsync = die_at
"""
"""Program that kills itself as it begins an fsync, in any of its threads. strace counts the calls of each thread."""
STEP = "STEP:"
"""Prefix of a step's name. A child passes both to `os.access`, which writes the step into its trace."""
_CALL = re.compile(r"^(\d+) +(\w+)\((.*)\) += (\d+|-1 \w+)(?:<(.*)>)?")
_UNFINISHED = re.compile(r"^(\d+) +(\w+)\((.*) <unfinished \.\.\.>$")
_RESUMED = re.compile(r"^(\d+) +<\.\.\. (\w+) resumed>(.*)$")
_ARGUMENT = re.compile(r'(?:AT_FDCWD|\d+)<([^>]*)>(?:, "([^"]*)")?|"([^"]*)"')
_FLAGS = re.compile(r"O_\w+")


@dataclass(frozen=True)
class Event:
    """One successful system call: its name and its paths. An event `STEP` has the name of the step."""

    call: str
    paths: tuple[str, ...]
    flags: frozenset[str] = frozenset()


@dataclass
class PowerLoss:
    """The synced content of a folder, by the traces of its writers. Initially every file is synced."""

    folder: Path
    unsynced: set[str] = field(default_factory=set)
    """Files with content that was not synced."""
    unnamed: set[str] = field(default_factory=set)
    """Files and folders whose name was not synced."""

    def run(self, code: str, kill_at_fsync: int | None = None) -> list[Event]:
        """Run Python code in a child process, and follow what it syncs. It may be killed as it begins an fsync."""
        events = self.trace(code, kill_at_fsync)
        for event in events:
            self.follow(event)
        return events

    def trace(self, code: str, kill_at_fsync: int | None = None) -> list[Event]:
        """Return the calls of a child process on files of the folder, and its steps, for `follow`."""
        programs.require("strace")
        log = self.folder.parent.parent / f"{self.folder.parent.name}.strace"
        # With the seccomp filter only traced calls stop the child.
        command = ["strace", "-f", "-y", "-s", "0", "-e", f"trace={CALLS}", "--seccomp-bpf", "-o", str(log)]
        dying = "" if kill_at_fsync is None else DYING.format(kill_at_fsync)
        ended = subprocess.run([*command, sys.executable, "-c", dying + code, str(self.folder)], cwd=ROOT, check=False)
        assert (ended.returncode == 0) is (kill_at_fsync is None)
        return [event for event in _events(log) if event.call == STEP or event.paths[-1].startswith(self._top)]

    def follow(self, event: Event) -> None:
        """Apply one call."""
        first, last = event.paths[0], event.paths[-1]
        if event.call in {"open", "openat", "creat"} and ("O_CREAT" in event.flags or event.call == "creat"):
            if first not in self._known:
                self._known.add(first)
                self.unnamed.add(first)
                self.unsynced.add(first)
            if "O_TRUNC" in event.flags:
                self.unsynced.add(first)
        elif event.call.startswith("mkdir"):
            self._known.add(first)
            self.unnamed.add(first)
        elif "write" in event.call or "truncate" in event.call:
            self.unsynced.add(first)
        elif event.call in {"fsync", "fdatasync"}:
            self.unsynced.discard(first)
            self.unnamed -= {path for path in self.unnamed if os.path.dirname(path) == first}  # noqa: PTH120
        elif event.call.startswith(("rename", "link")):
            self._known.add(last)
            self.unnamed.add(last)
            (self.unsynced.add if first in self.unsynced else self.unsynced.discard)(last)
        if event.call.startswith(("rename", "unlink")):
            for paths in (self.unsynced, self.unnamed, self._known):
                paths.discard(first)

    def present(self) -> list[Path]:
        """Return the files and folders that exist at this point of the trace."""
        return [Path(path) for path in sorted(self._known)]

    def is_safe(self, path: Path) -> bool:
        """Return whether a file, with its content, survives a power loss."""
        return str(path) not in self.unsynced and self.is_named(path)

    def is_named(self, path: Path) -> bool:
        """Return whether the names of a file and of all its folders survive a power loss."""
        return str(path) in self._known and self.unnamed.isdisjoint(map(str, (path, *path.parents)))

    def lose(self, copy: Path, *, empty: bool) -> Path:
        """Copy what is left after a power loss. Unsynced files are empty there, if `empty` also those without a name.

        A file system may have written a name and not the content, whether the name was synced or not.
        """
        copy.mkdir()
        for path in sorted(self.folder.rglob("*")):
            new = copy / path.relative_to(self.folder)
            is_sqlite = path.name.startswith("hot.sqlite")
            if not (empty or is_sqlite or self.is_named(path)):
                continue
            if path.is_dir():
                new.mkdir(parents=True, exist_ok=True)
            elif is_sqlite or self.is_safe(path):
                new.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, new)
            else:
                new.touch()
        return copy

    def __post_init__(self) -> None:
        self._top = str(next(path for path in self.folder.parents if path.exists()))
        self._known = {str(path) for path in (self.folder, *self.folder.rglob("*")) if path.exists()}


def _events(log: Path) -> Iterator[Event]:
    unfinished: dict[str, str] = {}
    for line in log.read_text().splitlines():
        if match := _UNFINISHED.match(line):
            unfinished[match[1]] = f"{match[1]} {match[2]}({match[3]}"
            continue
        if match := _RESUMED.match(line):
            line = unfinished.pop(match[1], "") + match[3]  # noqa: PLW2901
        if event := _event(line):
            yield event


def _event(line: str) -> Event | None:
    match = _CALL.match(line)
    if match is None:
        return None
    _, call, arguments, result, _ = match.groups()
    paths = tuple(_path(*groups) for groups in _ARGUMENT.findall(arguments))
    if call == "access" and paths[0].startswith(STEP):
        return Event(STEP, (paths[0].removeprefix(STEP),))
    if call == "access" or result.startswith("-1") or not paths:
        return None
    return Event(call, paths, frozenset(_FLAGS.findall(arguments)))


def _path(folder: str, name: str, bare: str) -> str:
    """Return the path of an argument: of a descriptor, of a name relative to a descriptor, or of a bare name."""
    return bare or (str(Path(folder, name)) if name else folder)
