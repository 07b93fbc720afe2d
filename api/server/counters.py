"""The counters of the server processes of a service, in files that all of them read to answer `/metrics`.

prometheus_client writes the files through mmap. A write to a block that a full disk cannot provide kills the process
(SIGBUS), so all blocks are allocated before. A file belongs to the number of a server process, not to its process id: a
restarted process continues the counts of the dead one.
"""

import os
import shutil
from pathlib import Path

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable that tells prometheus_client the folder."""
TYPES = ("counter", "histogram")
"""Types of shared metrics. Gauges are computed at each scrape: the gauge of a dead process is meaningless."""
FILE_BYTES = 1 << 20
"""Size of a file, in bytes. A series takes about 200 bytes, and there are fewer than 4,000 series."""
FORK_SERVER = "fork-server"
"""Place of a number in the names of the files of the process that imports `api.metrics` and never counts."""
_number: int | str = FORK_SERVER


def create(folder: Path, processes: int) -> None:
    """Create empty files for the processes and their fork server, and delete those of an earlier service.

    Raises:
        OSError: the disk has no space for the files.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number in (*range(processes), FORK_SERVER):
        for each in TYPES:
            with (folder / f"{each}_{number}.db").open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, FILE_BYTES)


def share() -> None:
    """Make this process, and those forked from it, count in the files of FOLDER, before `api.metrics` is imported."""
    from prometheus_client import values  # noqa: PLC0415  # the module reads the folder when it is imported

    values.ValueClass = values.MultiProcessValue(lambda: _number)  # type: ignore[no-untyped-call]  # has no types


def join(number: int) -> None:
    """Make this forked process count in the files of the server process `number`."""
    global _number  # noqa: PLW0603  # prometheus_client looks for a new number before each count
    _number = number
