"""Databases share the cores of the machine, and the queries of a database its memory."""

import os
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

from warehouse.query import engine

SETTINGS = "SELECT current_setting('threads'), current_setting('memory_limit'), current_setting('temp_directory')"


def test_each_of_several_workers_has_its_share_of_the_cores(tmp_path: Path) -> None:
    spill, cores = tmp_path / "spill", len(os.sched_getaffinity(0))
    shares = []
    for workers in (1, cores, cores + 1):
        with engine.share(spill, workers) as database:
            threads, memory, folder = database.execute(SETTINGS).fetchall()[0]
            shares.append((threads, memory))
            assert Path(folder).parent == spill
    assert shares == [(cores, "244.1 MiB"), (1, "244.1 MiB"), (1, "244.1 MiB")]
    assert not list(spill.iterdir())


def test_further_reads_of_hits_wait_for_the_first_ones(tmp_path: Path) -> None:
    order, begun = [], Event()

    def read() -> None:
        begun.set()
        with engine.reader(database) as cursor:
            order.append(cursor.sql("SELECT 'third'").fetchall()[0][0])

    with closing(engine.connect(tmp_path)) as database:
        third = Thread(target=read)
        with engine.reader(database), engine.reader(database):
            third.start()
            begun.wait()
            third.join(0.2)
            order.append("end of the first two")
        third.join()
    assert order == ["end of the first two", "third"]
