"""Folders of jobs: the limit on the files of idle jobs."""

import os
from contextlib import chdir
from pathlib import Path

from agent.sandbox.bubblewrap import MIB
from agent.worker.job_folders import limit_idle, locked


def add_job(jobs: Path, name: str, idle_s: int, size_mib: int = 4) -> Path:
    """Create the folder of a job that has been idle for `idle_s` seconds, and return its home."""
    home = jobs / name / "home"
    home.mkdir(parents=True)
    (home / "session").write_bytes(b"x" * size_mib * MIB)
    for file in (".lock", ".home", ".turn"):
        (home.parent / file).touch()
    os.utime(home.parent, (1e9 - idle_s, 1e9 - idle_s))
    return home


def test_files_of_jobs_that_are_idle_longest_are_removed_until_the_rest_has_room(tmp_path: Path) -> None:
    homes = [add_job(tmp_path, str(idle_s), idle_s) for idle_s in (30, 10, 20)]
    limit_idle(tmp_path, 9 * MIB)
    assert [home.exists() for home in homes] == [False, True, True]
    limit_idle(tmp_path, 5 * MIB)
    assert [home.exists() for home in homes] == [False, True, False]
    assert [file.name for file in homes[2].parent.iterdir()] == [".lock"], "its id and its mark are removed, too"


def test_files_of_a_running_job_are_neither_removed_nor_counted(tmp_path: Path) -> None:
    running, idle = add_job(tmp_path, "running", 20), add_job(tmp_path, "idle", 10)
    with locked(running.parent, lambda: False):
        limit_idle(tmp_path, 5 * MIB)
        assert (running.exists(), idle.exists()) == (True, True)
        limit_idle(tmp_path, 3 * MIB)
        assert (running.exists(), idle.exists()) == (True, False)


def test_files_that_cannot_be_measured_are_removed(tmp_path: Path) -> None:
    """Nest folders more deeply than the longest path that the system accepts."""
    home = add_job(tmp_path, "deep", 10, 0)
    with chdir(home):
        for _ in range(30):
            Path("x" * 250).mkdir()
            os.chdir("x" * 250)
    limit_idle(tmp_path, 5 * MIB)
    assert not home.exists()
