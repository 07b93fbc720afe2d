"""Servers that the workers of a run share."""

import os
from pathlib import Path

import httpx
import pytest

from tests.processes import ending
from tests.stores import shared
from tests.stores.object_store import new_bucket


@pytest.mark.long
def test_server_is_started_once_by_whoever_needs_it_and_ends_with_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(shared.FOLDER)
    assert shared.create()
    folder, mark = Path(os.environ[shared.FOLDER]), os.environ[ending.MARK]
    assert not shared.create(), "as in the workers, which inherit the variable"
    url = shared.object_store_url()
    monkeypatch.setenv(ending.MARK, f"{mark}worker")
    assert shared.object_store_url() == url
    assert new_bucket(url)
    pid = int((folder / "object-store.pid").read_text())
    assert f"{ending.MARK}={mark}\0".encode() in Path(f"/proc/{pid}/environ").read_bytes()
    shared.end()
    with pytest.raises(httpx.ConnectError):
        httpx.get(url)
    assert not folder.exists()
