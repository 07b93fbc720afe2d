"""What several tests of the warehouse look at."""

import os
from pathlib import Path

import pytest


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> set[Path]:
    """The files and folders that were waited for."""
    seen: set[Path] = set()
    fsync = os.fsync

    def spy(handle: int) -> None:
        seen.add(Path(f"/proc/self/fd/{handle}").readlink())
        fsync(handle)

    monkeypatch.setattr(os, "fsync", spy)
    return seen
