"""Status and headers of problems."""

import asyncio
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa
from starlette.requests import Request

from api.http import problems
from tests.processes.running import Running
from tests.processes.waiting import until
from warehouse.errors import DataIncomplete, InvalidMoment, LakeUnreachable, MomentExpired, SpillFull
from warehouse.query import engine


def test_incomplete_data_is_503_without_retry_after() -> None:
    request = Request({"type": "http", "headers": [], "state": {"request_id": "1"}})
    response = asyncio.run(problems.handle(request, DataIncomplete("lake/hits is at version 3, not 4")))
    body = json.loads(bytes(response.body))
    assert (response.status_code, body["type"]) == (503, "/docs#data-incomplete")
    assert body["detail"] == "lake/hits is at version 3, not 4"
    assert "retry-after" not in response.headers


def test_unreachable_object_store_and_full_spill_are_503_also_in_the_text_of_another_error() -> None:
    request = Request({"type": "http", "headers": [], "state": {"request_id": "1"}})
    unreachable = LakeUnreachable("s3://bucket does not answer")
    for error, status in (
        (unreachable, 503),
        (SpillFull("8GiB"), 503),
        (OSError(f"LakeUnreachable: {unreachable}"), 503),
        (OSError("other"), 500),
    ):
        response = asyncio.run(problems.handle(request, error))
        assert (response.status_code, response.headers.get("retry-after")) == (status, "5" if status == 503 else None)


def test_query_that_needs_too_much_memory_is_503_and_may_be_repeated(tmp_path: Path) -> None:
    request = Request({"type": "http", "headers": [], "state": {"request_id": "1"}})
    with closing(engine.connect(tmp_path, "10MB", threads=1)) as database, pytest.raises(Exception) as raised:  # noqa: PT011  # the class is DuckDB's, which only `warehouse` knows
        database.execute("SELECT list(repeat('x', 1000) || range) FROM range(100000)").fetchall()
    assert "Out of Memory Error" in str(raised.value)
    response = asyncio.run(problems.handle(request, raised.value))
    body = json.loads(bytes(response.body))
    assert (response.status_code, response.headers["retry-after"], body["type"]) == (503, "5", "/docs#overloaded")
    assert body["detail"] == problems.OUT_OF_MEMORY


def test_moment_that_cannot_be_read_any_more_is_410_and_one_that_never_was_is_an_invalid_parameter() -> None:
    request = Request({"type": "http", "headers": [], "state": {"request_id": "1"}})
    gone = asyncio.run(problems.handle(request, MomentExpired("the moment is older than 10 minutes")))
    assert (gone.status_code, json.loads(bytes(gone.body))["type"]) == (410, "/docs#moment-expired")
    invalid = asyncio.run(problems.handle(request, InvalidMoment("it is in the future")))
    body = json.loads(bytes(invalid.body))
    assert (invalid.status_code, body["type"]) == (400, "/docs#invalid-parameter")
    assert body["errors"] == [{"detail": "it is in the future", "parameter": "asOf"}]


def test_permanent_database_error_is_500_with_a_traceback_in_the_log_and_a_failed_readiness(
    start: Callable[..., Running], database_url: str
) -> None:
    service = start(READERSHIP_DATABASE_URL=database_url, READERSHIP_JOBS_AT_ONCE="0")
    engine = sa.create_engine(database_url)
    with engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE keys RENAME COLUMN name TO other"))
    response = httpx.get(service.views, headers=service.auth)
    assert (response.status_code, response.json()["type"]) == (500, "/docs#internal")
    assert "retry-after" not in response.headers
    lines = until(lambda: [line for line in service.log.read_text().splitlines() if "traceback" in line])
    logged = json.loads(lines[0])
    assert (logged["level"], logged["requestId"]) == ("error", response.json()["requestId"])
    assert "keys.name" in logged["message"]
    ready = until(lambda: answer if (answer := httpx.get(f"{service.url}/readyz")).status_code == 503 else None)
    assert ready.json()["checks"]["controlDatabase"].startswith("does not fit this version of the program")
    with engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE keys RENAME COLUMN other TO name"))
    engine.dispose()
    assert httpx.get(service.views, headers=service.auth).status_code == 200
    until(lambda: httpx.get(f"{service.url}/readyz").status_code == 200)
