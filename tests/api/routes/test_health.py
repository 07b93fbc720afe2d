"""Readiness: each check fails for its own fault and for no other."""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from api import app, settings
from api.settings import Settings
from tests.processes.running import PROJECT, new_key
from tests.processes.waiting import until
from tests.stores import sql
from tests.warehouse.site import Site, view
from warehouse.errors import LakeUnreachable
from warehouse.integrity import durability
from warehouse.lake import delta_table
from warehouse.report import cells, statements
from warehouse.tables import HITS_TABLE

OK = {"controlDatabase": "ok", "hotLog": "ok", "lake": "ok", "upkeep": "ok"}


@pytest.fixture
def chosen(tmp_path: Path) -> Settings:
    """Return settings under which nothing is loaded during a test."""
    environ = {"READERSHIP_LOAD_EVERY_S": "1000", "READERSHIP_BACKLOG_ROWS_MAX": "10000"}
    return settings.read(environ, tmp_path / "data")


@contextmanager
def running(chosen: Settings, hits: int) -> Iterator[TestClient]:
    """Start the app, and store this number of hits in the hot log."""
    key = new_key(chosen.data)
    (chosen.lake / delta_table.LAST_VACUUM).touch()  # the first vacuum, a second after the start, loads the hot log
    with TestClient(app.create(chosen)) as client:
        headers = {"Authorization": f"Bearer {key}"}
        response = client.post(f"/v1/analytics/{PROJECT}/hits", json=[{"path": "/a"}] * hits, headers=headers)
        assert response.status_code == 202
        yield client


def failed(client: TestClient) -> Any:
    """Assert that the service is not ready, and return the checks that fail."""
    response = client.get("/readyz")
    body = response.json()
    assert (response.status_code, body["status"]) == (503, "failed")
    assert body["checks"].keys() == OK.keys()
    return {check: fault for check, fault in body["checks"].items() if fault != "ok"}


def test_project_whose_reports_need_much_memory_is_a_warning(chosen: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "SLOW_ROWS", -1)
    monkeypatch.setattr(statements, "SLOW_MEMORY", "1MB")
    with running(chosen, hits=1) as client:
        headers = {"Authorization": f"Bearer {new_key(chosen.data)}"}
        assert client.get(f"/v1/analytics/{PROJECT}/views", headers=headers).status_code == 503
        until(lambda: "warnings" in client.get("/readyz").json())
        response = client.get("/readyz")
        assert (response.status_code, response.json()["status"]) == (200, "ok")
        assert response.json()["warnings"] == {"reports": "reports of 1 project need more memory than they may use"}


@pytest.mark.long
def test_full_backlog_fails_the_check_of_the_hot_log_and_not_liveness(chosen: Settings) -> None:
    with running(chosen, hits=10_000) as client:
        assert failed(client) == {"hotLog": "10000 hits wait to be loaded, and no more are accepted"}
        response = client.get("/healthz")
        assert (response.status_code, response.json()) == (200, {"status": "ok"})


def test_lost_lake_fails_its_check(chosen: Settings) -> None:
    with running(chosen, hits=1):
        pass  # the end of the app loads the hit
    with running(chosen, hits=1) as client:
        shutil.rmtree(chosen.lake / "hits")
        assert "hits" in failed(client)["lake"]


def test_message_of_an_object_store_is_in_the_log_and_not_in_the_response(
    chosen: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise LakeUnreachable("the object store of s3://lake does not answer: GET http://10.0.0.1/lake")

    with running(chosen, hits=1) as client:
        monkeypatch.setattr(durability, "require_commits", fail)
        assert failed(client)["lake"] == "the object store of the lake does not answer"
    assert "GET http://10.0.0.1/lake" in caplog.text


@pytest.mark.long
def test_day_that_cannot_be_compacted_is_a_warning_of_a_service_that_is_ready(chosen: Settings) -> None:
    new_key(chosen.data)
    with closing(Site(chosen.data, is_new=False)) as site:
        for _ in range(2):
            site.post(view())
            site.load()
        damaged, _ = site.state(HITS_TABLE).files
    Path(damaged.path).write_bytes(b"PAR1 and no more")
    with TestClient(app.create(chosen)) as client:
        warnings = until(lambda: client.get("/readyz").json().get("warnings"))
        response = client.get("/readyz")
    assert f"; in hits of {damaged.partition}; in the compaction of closed days; in the vacuum" in warnings["upkeep"]
    assert (response.status_code, response.json()["checks"]) == (200, OK)


@pytest.mark.long
def test_requests_share_a_look_up_and_those_for_readiness_its_result_for_a_second(chosen: Settings) -> None:
    with running(chosen, hits=1) as client:
        statements: list[str] = []
        engine = client.app_state["running"].control
        sql.watch(engine, statements.append)
        for path, query, most in (("/readyz", "FROM projects", 19), ("/metrics", "FROM jobs", 99)):
            statements.clear()
            with ThreadPoolExecutor(20) as pool:
                answers = [*pool.map(lambda _, path=path: client.get(path).status_code, range(100))]
            assert {*answers} == {200}
            assert 1 <= sum(query in each for each in statements) <= most, "100 without a shared look-up"
        assert client.get("/readyz").json() == {"status": "ok", "checks": OK}
