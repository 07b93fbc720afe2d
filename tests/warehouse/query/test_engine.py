"""Databases share the cores of the machine, and the queries of a database its memory."""

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

import pytest

from warehouse.query import engine

SETTINGS = "SELECT current_setting('threads'), current_setting('memory_limit'), current_setting('temp_directory')"


def test_each_of_several_workers_has_its_share_of_the_cores(tmp_path: Path) -> None:
    spill, cores = tmp_path / "spill", len(os.sched_getaffinity(0))
    shares = []
    for workers in (1, cores, cores + 1):
        with engine.Share(spill, workers).database() as database:
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


SPILL = """
import sys
from pathlib import Path
from warehouse.query import engine
with engine.Share(Path(sys.argv[1])).database() as of_worker:
    for database in (engine.connect(Path(sys.argv[1]), "20MB", threads=1), of_worker):
        database.execute("SET memory_limit = '20MB'")
        database.execute("SET enable_progress_bar = false")
        database.execute("CREATE TABLE texts AS SELECT md5(i::VARCHAR) AS text FROM range(1000000) AS t (i)")
        print("spilled", flush=True)
    sys.stdin.read()
"""


def spilling(folder: Path) -> subprocess.Popen[bytes]:
    """Start a process that has spilled, by itself and as a worker."""
    process = subprocess.Popen(
        [sys.executable, "-c", SPILL, folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == [b"spilled\n"] * 2
    return process


@pytest.mark.long
def test_start_removes_what_killed_processes_have_spilled(tmp_path: Path) -> None:
    with spilling(tmp_path) as living:
        with spilling(tmp_path) as killed:
            killed.kill()
        (tmp_path / "of somebody else").touch()
        owners = {path.name: path for path in tmp_path.iterdir()}
        of_killed = {name for name in owners if f"_{killed.pid}_" in name}
        assert {path.is_dir() for name, path in owners.items() if name in of_killed} == {True, False}
        engine.connect(tmp_path).close()
        assert {path.name for path in tmp_path.iterdir()} == owners.keys() - of_killed
        assert any(f"_{living.pid}_" in name for name in owners)
        living.kill()
