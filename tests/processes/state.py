"""State of other processes, from /proc. Each function takes a process that may end at any moment."""

from contextlib import suppress
from pathlib import Path


def is_running(pid: int) -> bool:
    """Return whether the process exists and is not a zombie."""
    stat = _read(Path(f"/proc/{pid}/stat")).decode(errors="replace")
    return stat != "" and stat.rpartition(")")[2].split()[0] != "Z"


def command_line(pid: int) -> bytes:
    """Return the command line of a process, empty if the process has ended."""
    return _read(Path(f"/proc/{pid}/cmdline"))


def children(parent: int) -> list[int]:
    """Return the ids of the children of all threads of a process; none if the process has ended."""
    tasks = Path(f"/proc/{parent}/task")
    try:
        threads = list(tasks.iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(child) for thread in threads for child in _read(thread / "children").split()]


def descendants(parent: int) -> list[int]:
    """Return the ids of the children of a process, and of their children."""
    child_ids = children(parent)
    return [*child_ids, *(each for child_id in child_ids for each in descendants(child_id))]


def listens(pid: int, port: int) -> bool:
    """Return whether the process has an open socket that accepts TCP connections at the port."""
    rows = [line.split() for line in _read(Path(f"/proc/{pid}/net/tcp")).decode().splitlines()[1:]]
    listening = {f"socket:[{row[9]}]" for row in rows if row[3] == "0A" and row[1].endswith(f":{port:04X}")}
    with suppress(FileNotFoundError, ProcessLookupError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                if str(descriptor.readlink()) in listening:
                    return True
    return False


def _read(file: Path) -> bytes:
    """Return the content of a file of /proc, empty if its process or thread has ended.

    If it ends between the opening and the reading of the file, the error is ESRCH.
    """
    try:
        return file.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""
