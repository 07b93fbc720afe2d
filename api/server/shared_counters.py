"""Counters in files that all server processes read, so that each process answers `/metrics` for all.

prometheus_client writes these files through mmap. A write to a block that a full disk cannot provide kills the process
(SIGBUS), so all blocks of each file are allocated at the start. A file belongs to the number of a server process, not
to its process id: a restarted process continues the counts of the dead one, and the number of files is constant.
"""

import os
import shutil
from pathlib import Path

TYPES = ("counter", "histogram")
"""Types of metrics in the files. Gauges are computed at each scrape: the gauge of a dead process is meaningless."""
FILE_BYTES = 1 << 20
"""Size of a file, in bytes. A series takes about 200 bytes, and there are fewer than 4,000 series."""


def create(folder: Path, processes: int) -> None:
    """Create empty files, and delete those of an earlier service.

    Raises:
        OSError: the disk has no space for the files.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number in range(processes):
        for each in TYPES:
            with (folder / f"{each}_{number}.db").open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, FILE_BYTES)


def join(folder: Path, number: int) -> None:
    """Make this process count in the files of process `number`. Must be called before `api.metrics` is imported."""
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
    from prometheus_client import values  # noqa: PLC0415  # the module reads the variable when it is imported

    values.ValueClass = values.MultiProcessValue(lambda: number)  # type: ignore[no-untyped-call]  # has no types
