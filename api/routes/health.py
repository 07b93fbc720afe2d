"""Liveness, readiness, metrics and the OpenAPI document of the service."""

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from agent.jobs.queue import queue_stats
from api import metrics
from api.http.operation import JSON, TEXT, Operation, Success
from api.state import State, state_of
from ingest.hotlog.writer import BACKLOG_BYTES_MAX
from warehouse import clock
from warehouse.control import database
from warehouse.database.pool import PoolError
from warehouse.database_errors import outage_of, reason_of, status_of
from warehouse.errors import LakeUnreachable
from warehouse.hotlog.connection import HOT_LOG_ERRORS

LOG = logging.getLogger("readership.health")


class Readiness(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of all checks of the service."""

    status: Annotated[Literal["ok", "failed"], Meta(description="`failed` if any check fails.")]
    checks: Annotated[dict[str, str], Meta(description="`ok` or the fault, by check.")]
    warnings: Annotated[
        dict[str, str], Meta(description="Faults that the operator should look at, although the service works.")
    ] = msgspec.field(default_factory=dict)


async def alive(request: Request) -> Response:
    return JSONResponse(_ALIVE)


async def ready(request: Request) -> Response:
    """Respond to GET /readyz: 200 if every check passes, otherwise 503.

    Anyone may ask, and the checks read two databases and list three folders of an object store.
    """
    state = state_of(request)
    content, status = state.readiness.get("") or await state.readiness.look_up("", partial(_readiness, state))
    return Response(content, status, media_type=JSON)


async def metrics_text(request: Request) -> Response:
    """Respond to GET /metrics. Anyone may ask: requests that arrive during a look-up get its result."""
    state = state_of(request)
    return Response(await state.metrics.look_up("", partial(_metrics, state)), media_type=CONTENT_TYPE_LATEST)


async def openapi(request: Request) -> Response:
    """Respond to GET /openapi.json. Its HTML pages are pages of the dashboard."""
    return Response(state_of(request).reference.json, media_type=JSON)


def _metrics(state: State) -> bytes:
    stats = queue_stats(state.control, time.time_ns() // 1_000)
    return metrics.exposition(state.background.maintenance.backlog().rows, stats)


def _readiness(state: State) -> tuple[bytes, int]:
    """Return the content and the status of a response."""
    faults = _faults(state)
    warnings = {
        "clock": clock.warning(state.settings.lake.local),
        "upkeep": state.background.maintenance.warning,
        "reports": state.reports.warning,
    }
    readiness = Readiness(
        "failed" if any(faults.values()) else "ok",
        {check: fault or "ok" for check, fault in faults.items()},
        {name: warning for name, warning in warnings.items() if warning},
    )
    return msgspec.json.encode(readiness), 503 if any(faults.values()) else 200


def _faults(state: State) -> dict[str, str | None]:
    return {
        "controlDatabase": _control_database_fault(state),
        "hotLog": _hot_log_fault(state),
        "lake": _lake_fault(state),
        "upkeep": state.background.maintenance.fault,
    }


def _control_database_fault(state: State) -> str | None:
    try:
        database.probe(state.control)
    except PoolError as error:
        LOG.warning("the control database failed its check: %s", reason_of(error))
        return status_of(error)
    return None


def _hot_log_fault(state: State) -> str | None:
    if state.intake.hotlog.shortage is not None:
        return state.intake.hotlog.shortage
    if state.intake.hotlog.fault is not None:
        return f"the last posts could not be stored: {state.intake.hotlog.fault}"
    try:
        backlog = state.background.maintenance.backlog()
    except HOT_LOG_ERRORS as error:
        return status_of(error)
    if backlog.rows >= state.settings.backlog_rows_max or backlog.bytes >= BACKLOG_BYTES_MAX:
        return f"{backlog.rows} hits wait to be loaded, and no more are accepted"
    if backlog.age_s(time.time()) > state.settings.late_s:
        return "hits have waited too long to be loaded"
    return state.reports.fault()


def _lake_fault(state: State) -> str | None:
    try:
        return state.background.maintenance.lake_fault()
    except LakeUnreachable as error:  # its message has the address of the store
        LOG.warning("the lake failed its check: %s", error)
        return outage_of(error)
    except HOT_LOG_ERRORS:
        return "cannot be compared with the hot log, which cannot be read"


def _get(id: str, path: str, handler: Callable[..., object] | None, *responses: Success) -> Operation:
    return Operation(id, "GET", path, handler, "Service", responses, key="none")


_ALIVE = {"status": "ok"}
_CHECKS = {JSON: Readiness}
_DOCUMENT = {JSON: {"required": ["openapi", "info", "paths"]}}
_READY = (Success(200, "Every check passes.", _CHECKS), Success(503, "A check fails.", _CHECKS))
OPERATIONS = (
    _get("alive", "/healthz", alive, Success(200, "The process is alive.", {JSON: {"const": _ALIVE}})),
    _get("ready", "/readyz", ready, *_READY),
    _get("metrics", "/metrics", metrics_text, Success(200, "Prometheus text format.", {TEXT: str})),
    _get("description", "/openapi.json", openapi, Success(200, "OpenAPI 3.1.", _DOCUMENT)),
    _get("reference", "/docs", None, Success(200, "HTML.", {"text/html": str})),
)
