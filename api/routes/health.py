"""Whether the service lives, whether it can take and count hits, and what it has counted."""

import logging
import sqlite3
import time

import sqlalchemy as sa
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from agent.jobs.queue import queue_stats
from api import metrics
from api.state import State, state_of
from warehouse import clock
from warehouse.control import database
from warehouse.database_errors import reason_of, status_of

LOG = logging.getLogger("readership.health")
STALE_LOADS = 5
"""A hot log whose oldest batch has waited this many load intervals is not being loaded."""


async def alive(request: Request) -> Response:
    """GET /healthz: the process answers."""
    return JSONResponse({"status": "ok"})


async def ready(request: Request) -> Response:
    """GET /readyz: 200 if every check passes, else 503; the body has each check and its fault, and warnings."""
    checks = await run_in_threadpool(_checks, state_of(request))
    failed = any(fault for fault in checks.values())
    body: dict[str, object] = {
        "status": "failed" if failed else "ok",
        "checks": {name: fault or "ok" for name, fault in checks.items()},
    }
    if warning := await run_in_threadpool(clock.warning, state_of(request).settings.lake):
        body["warnings"] = {"clock": warning}
    return JSONResponse(body, 503 if failed else 200)


async def metrics_text(request: Request) -> Response:
    """GET /metrics"""
    state = state_of(request)
    text = await run_in_threadpool(
        lambda: metrics.exposition(
            state.maintenance.backlog().rows, queue_stats(state.control, time.time_ns() // 1_000)
        )
    )
    return Response(text, media_type=CONTENT_TYPE_LATEST)


def _checks(state: State) -> dict[str, str | None]:
    return {
        "controlDatabase": _control(state),
        "hotLog": _hot_log(state),
        "lake": _lake(state),
        "upkeep": state.maintenance.fault,
    }


def _control(state: State) -> str | None:
    try:
        database.probe(state.control)
    except sa.exc.SQLAlchemyError as error:
        LOG.warning("the control database failed its check: %s", reason_of(error))
        return status_of(error)
    return None


def _hot_log(state: State) -> str | None:
    if state.hotlog.shortage is not None:
        return state.hotlog.shortage
    if state.hotlog.fault is not None:
        return f"the last posts could not be stored: {state.hotlog.fault}"
    try:
        backlog = state.maintenance.backlog()
    except sqlite3.DatabaseError as error:
        return status_of(error)
    if backlog.rows >= state.settings.backlog_rows_max:
        return f"{backlog.rows} hits wait to be loaded, and no more are taken"
    if backlog.age_s(time.time()) > STALE_LOADS * max(state.settings.load_every_s, 60):
        return "hits have waited too long to be loaded"
    return state.reports.fault()


def _lake(state: State) -> str | None:
    try:
        return state.maintenance.lake_fault()
    except sqlite3.DatabaseError:
        return "cannot be compared with the hot log, which cannot be read"
