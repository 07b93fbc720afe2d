"""Status and headers of problems."""

import asyncio
import errno
import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response

from api.http import problems
from api.logs import Outages
from tests.processes.running import Running
from tests.processes.waiting import until
from tests.stores.sql import opened
from warehouse.database.pool import PoolError
from warehouse.database.postgresql import ServerError
from warehouse.errors import DataIncomplete, InvalidMoment, LakeUnreachable, MomentExpired, SpillFull
from warehouse.query import engine


def handled(error: Exception, **state: Any) -> tuple[Response, Any]:
    """Return the response to a request that raises this error, and its body."""
    request = Request({"type": "http", "headers": [], "state": {"request_id": "1", **state}})
    response = asyncio.run(problems.handle(request, error))
    return response, json.loads(bytes(response.body))


def test_incomplete_data_is_503_without_retry_after() -> None:
    response, body = handled(DataIncomplete("lake/hits is at version 3, not 4"))
    assert (response.status_code, body["type"]) == (503, "/docs#data-incomplete")
    assert body["detail"] == "lake/hits is at version 3, not 4"
    assert "retry-after" not in response.headers


def sqlite_error(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("the message of SQLite")
    error.sqlite_errorcode = code
    return error


def of_control_database(code: int) -> PoolError:
    return PoolError(sqlite_error(code))


UNREACHABLE = LakeUnreachable("s3://bucket does not answer")


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (sqlite_error(sqlite3.SQLITE_BUSY), "the hot log does not answer"),
        (sqlite_error(sqlite3.SQLITE_FULL), "the disk of the hot log is full"),
        (sqlite_error(sqlite3.SQLITE_IOERR), "the disk of the hot log cannot be read or written"),
        (ServerError("refused", None, is_lost=True), "the hot log does not answer"),
        (of_control_database(sqlite3.SQLITE_BUSY), "the control database does not answer"),
        (of_control_database(sqlite3.SQLITE_FULL), "the disk of the control database is full"),
        (of_control_database(sqlite3.SQLITE_IOERR), "the disk of the control database cannot be read or written"),
        (PoolError(ServerError("refused", None, is_lost=True)), "the control database does not answer"),
        (UNREACHABLE, "the object store of the lake does not answer"),
        (OSError(f"LakeUnreachable: {UNREACHABLE}"), "the object store of the lake does not answer"),
        (SpillFull("8GiB"), str(SpillFull("8GiB"))),
        (OSError(errno.EIO, "Input/output error"), "a disk of the service cannot be read or written"),
    ],
)
def test_store_that_fails_is_a_503_that_names_it(error: Exception, detail: str) -> None:
    response, body = handled(error, outages=Outages(lambda *_: None))
    assert (response.status_code, response.headers["retry-after"], body["detail"]) == (503, "5", detail)


def test_fault_of_the_program_is_a_500_without_a_delay() -> None:
    for error in (OSError("other"), sqlite_error(sqlite3.SQLITE_ERROR), of_control_database(1)):
        response, body = handled(error)
        assert (response.status_code, body["detail"]) == (500, "an error of the service")
        assert "retry-after" not in response.headers


def test_query_that_needs_too_much_memory_is_503_and_may_be_repeated(tmp_path: Path) -> None:
    with closing(engine.connect(tmp_path, "10MB", threads=1)) as database, pytest.raises(Exception) as raised:  # noqa: PT011  # the class is DuckDB's, which only `warehouse` knows
        database.execute("SELECT list(repeat('x', 1000) || range) FROM range(100000)").fetchall()
    assert "Out of Memory Error" in str(raised.value)
    response, body = handled(raised.value)
    assert (response.status_code, response.headers["retry-after"], body["type"]) == (503, "5", "/docs#overloaded")
    assert body["detail"] == problems.OUT_OF_MEMORY


def test_moment_that_cannot_be_read_any_more_is_410_and_one_that_never_was_is_an_invalid_parameter() -> None:
    gone, body = handled(MomentExpired("the moment is older than 10 minutes"))
    assert (gone.status_code, body["type"]) == (410, "/docs#moment-expired")
    invalid, body = handled(InvalidMoment("it is in the future"))
    assert (invalid.status_code, body["type"]) == (400, "/docs#invalid-parameter")
    assert body["errors"] == [{"detail": "it is in the future", "parameter": "asOf"}]


@pytest.mark.long
def test_permanent_database_error_is_500_with_a_traceback_in_the_log_and_a_failed_readiness(
    start: Callable[..., Running], database_url: str
) -> None:
    service = start(READERSHIP_DATABASE_URL=database_url, READERSHIP_JOBS_AT_ONCE="0")
    engine = opened(database_url)
    with engine.transaction() as connection:
        connection.execute("ALTER TABLE keys RENAME COLUMN name TO other")
    response = httpx.get(service.views, headers=service.auth)
    assert (response.status_code, response.json()["type"]) == (500, "/docs#internal")
    assert "retry-after" not in response.headers
    lines = until(lambda: [line for line in service.log.read_text().splitlines() if "traceback" in line])
    logged = json.loads(lines[0])
    assert (logged["level"], logged["requestId"]) == ("error", response.json()["requestId"])
    assert re.search("column.*name", logged["message"])
    ready = until(lambda: answer if (answer := httpx.get(f"{service.url}/readyz")).status_code == 503 else None)
    assert ready.json()["checks"]["controlDatabase"].startswith("does not fit this version of the program")
    with engine.transaction() as connection:
        connection.execute("ALTER TABLE keys RENAME COLUMN other TO name")
    engine.close()
    assert httpx.get(service.views, headers=service.auth).status_code == 200
    until(lambda: httpx.get(f"{service.url}/readyz").status_code == 200)
