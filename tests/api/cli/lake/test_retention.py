"""`retention` deletes old days, and requires `--yes` after the clock jumped."""

import json
import os
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient

from api import app, data_folder, settings
from ingest.hotlog.ledger_store import Ledger
from ingest.imports.fingerprint import Fingerprint, fingerprint
from ingest.imports.ledger import Position, record
from tests.processes.running import readership
from tests.processes.waiting import until
from tests.warehouse.site import DAY, SECRET, Site, view
from warehouse import clock
from warehouse.maintenance import rollups
from warehouse.rollups import catalog
from warehouse.tables import HITS_TABLE

ENVIRON = {**os.environ, "READERSHIP_RETENTION_DAYS": "30"}


def folder_with_old_hits(data: Path) -> Path:
    """Create a data folder with a hit of 40 days ago, and one of today; the clock jumped by 400 days since."""
    data_folder.prepare(settings.read({}, data))
    now = datetime.now(UTC)
    with closing(Site(data)) as site:
        site.post(view(ts=now - 40 * DAY, event_id="old"), view(ts=now, event_id="new"))
        site.load()
        ledger = Ledger(site.hot, "site", SECRET)
        start = Position(0, Fingerprint(), ends_mid_line=False, newest_id=9)
        for days in (40, 0):
            record(ledger, start, fingerprint(b"%d" % days), ends_mid_line=False, now_s=(now - days * DAY).timestamp())
    clock.record(data / "lake", clock.Clock(time.time() - 400 * 24 * 3600))
    return data


def event_ids(data: Path) -> list[str]:
    with closing(Site(data)) as site:
        return site.event_ids()


def logs(data: Path) -> int:
    """Return the number of logs in the ledger."""
    with closing(Site(data)) as site:
        return int(site.hot.execute("SELECT count(*) FROM read_logs").fetchone()[0])


@pytest.mark.long
def test_clock_that_jumped_is_an_error_until_it_is_confirmed(tmp_path: Path) -> None:
    data = folder_with_old_hits(tmp_path / "data")
    refused = readership("--data", str(data), "retention", env=ENVIRON)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "the clock jumped" in refused.stderr
    assert "readership retention --yes" in refused.stderr
    assert (event_ids(data), logs(data)) == (["new", "old"], 2)
    confirmed = readership("--data", str(data), "retention", "--yes", env=ENVIRON)
    assert json.loads(confirmed.stdout) == {"removed": 1}
    assert (event_ids(data), logs(data)) == (["new"], 1)
    assert clock.warning(data / "lake") is None


@pytest.mark.long
def test_deleted_days_are_in_no_rollup_that_is_used(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data_folder.prepare(settings.read({}, data))
    deleted, stored = datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 1, 6, tzinfo=UTC)
    with closing(Site(data)) as site:
        site.post(view("/deleted", deleted), view("/stored", stored))
        site.load()
        rollups.rebuild(site.hot, site.root, site.share, datetime.now(UTC).date(), 0)
        days = (datetime.now(UTC).date() - stored.date()).days
        environ = {**os.environ, "READERSHIP_RETENTION_DAYS": str(days)}
        done = readership("--data", str(data), "retention", "--yes", env=environ)
        assert json.loads(done.stdout) == {"removed": 1}
        (part,) = catalog.choose(site.root, site.state(HITS_TABLE).files).parts
        assert part.is_whole
        cells = pq.read_table(part.rollup.folder / "paths.parquet", partitioning=None)
        assert set(cells["path"].to_pylist()) == {"/stored"}


def test_retention_that_is_not_set_is_an_error(tmp_path: Path) -> None:
    refused = readership("--data", str(tmp_path), "retention")
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert "READERSHIP_RETENTION_DAYS is not set" in refused.stderr


def test_clock_can_be_confirmed_where_no_retention_is_set(tmp_path: Path) -> None:
    data = folder_with_old_hits(tmp_path / "data")
    refused = readership("--data", str(data), "retention")
    assert "READERSHIP_RETENTION_DAYS is not set" in refused.stderr
    clock.observe(data / "lake", time.time(), time.time)
    assert clock.warning(data / "lake") is not None
    confirmed = readership("--data", str(data), "retention", "--yes")
    assert (confirmed.returncode, json.loads(confirmed.stdout)) == (0, {"removed": 0})
    assert clock.warning(data / "lake") is None
    assert event_ids(data) == ["new", "old"]


@pytest.mark.long
def test_hits_that_wait_in_the_hot_log_show_that_the_clock_of_a_new_folder_jumped(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data_folder.prepare(settings.read({}, data))
    long_ago = datetime.now(UTC) - 400 * DAY
    with closing(Site(data)) as site:
        site.post(view(ts=long_ago, received_at=long_ago, event_id="only"))
    refused = readership("--data", str(data), "retention", env=ENVIRON)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "the clock jumped" in refused.stderr
    assert event_ids(data) == ["only"]


@pytest.mark.long
def test_readyz_warns_of_a_clock_that_jumped_and_stays_ready(tmp_path: Path) -> None:
    chosen = settings.read({}, tmp_path / "data")
    data_folder.prepare(chosen)
    now_s = time.time()
    with TestClient(app.create(chosen)) as client:
        clock.record(tmp_path / "data" / "lake", clock.Clock(now_s - 400 * 24 * 3600, now_s))
        until(lambda: "warnings" in client.get("/readyz").json())  # the answer is cached for a second
        answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, "ok")
    assert answer.json()["warnings"]["clock"].startswith("the clock jumped: it shows ")
