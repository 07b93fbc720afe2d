"""The app in Starlette's TestClient, inside the test's own process."""

import gc
import json
import logging
import signal
import sys
import threading
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from api import app, settings
from api.http import access_log
from api.settings import Settings
from ingest.hits.evidence import Evidence
from ingest.hits.hit import BeaconHit, beacon_hit
from ingest.hits.row import USER_AGENTS, row
from ingest.hotlog import writer
from ingest.verification.verdict import Verdict
from tests.processes.running import PROJECT, new_key
from tests.processes.waiting import until
from warehouse.hotlog import batches

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"


@pytest.fixture
def prepared(tmp_path: Path) -> tuple[Settings, dict[str, str]]:
    """Settings of a data folder with one project, and the header with its key."""
    data = tmp_path / "data"
    key = new_key(data)
    return settings.read({}, data), {"Authorization": f"Bearer {key}"}


def test_request_whose_client_has_left_is_logged_without_a_problem(
    prepared: tuple[Settings, dict[str, str]], capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    def leave(request: Request) -> Response:
        raise ClientDisconnect

    caplog.set_level(logging.INFO, access_log.LOG.name)
    with TestClient(app.create(prepared[0], (Route("/", leave),))) as client:
        client.get("/", headers={"Accept": "text/html"})
    line = json.loads(capfd.readouterr().err)
    assert (line["status"], line.get("problem")) == (499, None)


def process_state() -> tuple[object, ...]:
    """Return what an app could change in its process: signal handlers, logging, hooks and garbage collection."""
    handlers = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    logs = [logging.getLogger().handlers[:], logging.getLogger("readership").level]
    return handlers, logs, sys.excepthook, threading.excepthook, gc.get_freeze_count(), gc.get_threshold()


def test_app_leaves_its_process_as_it_was(prepared: tuple[Settings, dict[str, str]]) -> None:
    chosen, _ = prepared
    gc.unfreeze()  # objects that an import in this process froze, and that may be freed meanwhile
    before, threads = process_state(), set(threading.enumerate())
    with TestClient(app.create(chosen)) as client:
        assert client.get("/readyz").status_code == 200
        assert process_state() == before
    assert process_state() == before
    # Idle threads of the event loop's pool end after the loop; those of reports are for all apps of a process.
    until(lambda: all(each in threads or each.name.startswith("report_") for each in threading.enumerate()))


def test_user_agents_in_memory_take_their_share_of_the_cache(prepared: tuple[Settings, dict[str, str]]) -> None:
    chosen = replace(prepared[0], cache_mib=1)
    with TestClient(app.create(chosen)):
        USER_AGENTS.columns_of_all([f"{number}{'x' * 9_000}" for number in range(20)])
        assert 0 < USER_AGENTS.nbytes <= chosen.user_agents_bytes


@pytest.mark.long
def test_app_verifies_with_the_network_as_the_settings_allow_it(
    prepared: tuple[Settings, dict[str, str]], caplog: pytest.LogCaptureFixture
) -> None:
    def state(client: TestClient) -> str:
        verdict: Verdict = client.app_state["running"].intake.verifier.verify("Baiduspider", "", Evidence(), 0)
        return verdict.state

    chosen, _ = prepared
    with TestClient(app.create(chosen)) as client:
        assert state(client) == "claimed", "there is no list of its addresses"
    online = replace(chosen, reverse_dns=True, key_directories=("localhost",))
    with TestClient(app.create(online)) as client:
        assert state(client) == "not_checked", "its addresses have names"
        until(lambda: "the key directory of localhost cannot be used: the host has an address of" in caplog.text)


@pytest.mark.long
def test_app_with_a_damaged_batch_stores_posts_and_names_the_batch(
    prepared: tuple[Settings, dict[str, str]], caplog: pytest.LogCaptureFixture
) -> None:
    chosen, key = prepared
    assert isinstance(chosen.hot_log, Path)
    with closing(batches.connect(chosen.hot_log)) as hot:
        writer.store(
            hot, [row(PROJECT, beacon_hit(BeaconHit(path="/a"), FIREFOX, datetime.now(UTC)), "server", 0)], time.time()
        )
        hot.execute("UPDATE batches SET checksum = x'00'")
    named = f"batch 1 in {chosen.hot_log} is damaged"
    with TestClient(app.create(chosen)) as client:
        assert named in caplog.text
        posted = client.post(f"/v1/analytics/{PROJECT}/hits", json={"path": "/a"}, headers=key)
        ready = client.get("/readyz")
    assert (posted.status_code, ready.status_code) == (202, 503)
    assert named in ready.json()["checks"]["hotLog"]
