"""Databases of several processes share the cores of the machine."""

import os
from pathlib import Path

from warehouse.query import engine

SETTINGS = "SELECT current_setting('threads'), current_setting('memory_limit'), current_setting('temp_directory')"


def test_each_of_several_workers_has_its_share_of_the_cores(tmp_path: Path) -> None:
    spill, cores = tmp_path / "spill", len(os.sched_getaffinity(0))
    found = []
    for workers in (1, cores, cores + 1):
        with engine.share(spill, workers) as database:
            threads, memory, folder = database.execute(SETTINGS).fetchall()[0]
            found.append((threads, memory))
            assert Path(folder).parent == spill
    assert found == [(cores, "244.1 MiB"), (1, "244.1 MiB"), (1, "244.1 MiB")]
    assert not list(spill.iterdir())
