"""A process that does not use the lake of this one is found, with the reason."""

import pickle
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from tests.warehouse.site import ROOT
from warehouse.batch import reach
from warehouse.batch.reach import PACKAGES
from warehouse.lake.roots import LocalPath

ANSWER = """
import pickle, sys
from warehouse.batch import reach
print(reach.answer(pickle.load(sys.stdin.buffer), "process"))
"""


def test_answer_is_found_in_the_lake_and_deleted(tmp_path: Path) -> None:
    with reach.probe(LocalPath(tmp_path)) as probe:
        assert reach.answer(probe, "process") == ""
        assert reach.fault(probe, "process") == ""
    assert not list(tmp_path.iterdir())


def test_answer_in_another_lake_is_a_fault(tmp_path: Path) -> None:
    with reach.probe(LocalPath(tmp_path)) as probe:
        assert "copy of the lake" in reach.fault(probe, "process")
        assert "another lake" in reach.answer(replace(probe, root=LocalPath(tmp_path / "other")), "process")


def test_lake_that_cannot_be_written_is_a_fault(tmp_path: Path) -> None:
    with reach.probe(LocalPath(tmp_path)) as probe:
        folder = tmp_path / reach.FOLDER / f"{probe.name}.process"
        folder.mkdir()  # also root cannot replace a folder by a file
        assert "cannot use the lake" in reach.answer(probe, "process")
        folder.rmdir()


def test_other_release_is_a_fault(tmp_path: Path) -> None:
    with reach.probe(LocalPath(tmp_path)) as probe:
        answer = reach.answer(replace(probe, release="9.9"), "process")
        assert "this machine has 9.9: install the same release" in answer
        assert reach.fault(probe, "process")


def answer_in(checkout: Path, probe: reach.Probe) -> str:
    """Answer a probe in a process that runs the code of another checkout."""
    argv = [sys.executable, "-c", ANSWER]
    done = subprocess.run(argv, cwd=checkout, input=pickle.dumps(probe), capture_output=True, timeout=120, check=True)
    return done.stdout.decode().strip()


def test_other_source_of_the_same_version_is_a_fault_that_names_both_releases(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    for package in PACKAGES:
        shutil.copytree(ROOT / package, checkout / package, ignore=shutil.ignore_patterns("__pycache__"))
    with reach.probe(LocalPath(tmp_path / "lake")) as probe:
        assert answer_in(checkout, probe) == ""
        with (checkout / "ingest" / "formats" / "clf.py").open("a") as changed:
            changed.write("# another line\n")
        answer = answer_in(checkout, probe)
    match = re.fullmatch(r"has readership (.+), and this machine has (.+): install the same release.*", answer)
    assert match
    assert match[2] == probe.release
    assert match[1] != match[2]
    assert match[1].partition(" ")[0] == match[2].partition(" ")[0]  # the version
