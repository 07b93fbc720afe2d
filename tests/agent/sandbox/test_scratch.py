"""Temporary folders of turns are removed, also those of killed workers, and never those in use."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from agent.sandbox import scratch
from tests.warehouse.site import ROOT

KILLED = """
import os, signal
from agent.sandbox import scratch
with scratch.folder() as path:
    (path / "prompt").write_text("secret")
    print(path, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make `tmp_path` the folder of temporary files, for this process and its children."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_folder_is_removed_with_its_files_also_after_an_error() -> None:
    paths: list[Path] = []

    def fail() -> None:
        with scratch.folder() as path:
            (path / "prompt").write_text("secret")
            paths.append(path)
            raise RuntimeError("the turn failed")

    with pytest.raises(RuntimeError, match="the turn failed"):
        fail()
    assert not paths[0].exists()


def test_folder_is_for_its_owner_only_and_not_removed_while_it_is_used() -> None:
    with scratch.folder() as first, scratch.folder() as second:
        assert first != second
        assert first.is_dir()
        assert first.stat().st_mode & 0o777 == 0o700


def test_folder_of_a_killed_worker_is_removed_by_the_next_turn() -> None:
    done = subprocess.run([sys.executable, "-c", KILLED], cwd=ROOT, capture_output=True, text=True, check=False)
    left = Path(done.stdout.strip())
    assert (left / "prompt").read_text() == "secret"
    with scratch.folder():
        assert not left.exists()


def test_other_folders_and_links_are_not_removed(temporary: Path) -> None:
    other, target = temporary / "other", temporary / "target"
    other.mkdir()
    target.mkdir()
    (temporary / f"{scratch.PREFIX}link").symlink_to(target)
    with scratch.folder():
        assert other.is_dir()
        assert target.is_dir()
