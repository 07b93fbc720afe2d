"""Liveness, readiness and metrics of the service."""

import logging
import time
from functools import partial
from typing import Annotated, Literal

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from agent.jobs.queue import queue_stats
from api import metrics
from api.http.operation import ADDRESS, JSON, TEXT, Content, Operation, Success, json_content
from api.state import State, state_of
from ingest.hotlog.writer import BACKLOG_BYTES_MAX
from warehouse import clock
from warehouse.control import database
from warehouse.database.pool import PoolError
from warehouse.database_errors import reason_of, status_of
from warehouse.hotlog.connection import HOT_LOG_ERRORS

LOG = logging.getLogger("readership.health")


class Readiness(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of all checks of the service."""

    status: Annotated[Literal["ok", "failed"], msgspec.Meta(description="`failed` if any check fails.")]
    checks: Annotated[dict[str, str], msgspec.Meta(description="`ok` or the fault, by check.")]
    warnings: Annotated[
        dict[str, str],
        msgspec.Meta(description="Faults that the operator should look at, although the service works."),
    ] = msgspec.field(default_factory=dict)


async def alive(request: Request) -> Response:
    """Respond to GET /healthz."""
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


def _metrics(state: State) -> bytes:
    stats = queue_stats(state.control, time.time_ns() // 1_000)
    return metrics.exposition(state.maintenance.backlog().rows, stats)


def _readiness(state: State) -> tuple[bytes, int]:
    """Return the content and the status of a response."""
    faults = _faults(state)
    warnings = {
        "clock": clock.warning(state.settings.lake.local),
        "upkeep": state.maintenance.warning,
        "reports": state.reports.warning,
    }
    readiness = Readiness(
        "failed" if any(faults.values()) else "ok",
        {check: fault or "ok" for check, fault in faults.items()},
        {name: warning for name, warning in warnings.items() if warning},
    )
    return msgspec.json.encode(readiness), 503 if any(faults.values()) else 200


def _faults(state: State) -> dict[str, str | None]:
    """Return the fault of each check, or None."""
    return {
        "controlDatabase": _control_database_fault(state),
        "hotLog": _hot_log_fault(state),
        "lake": _lake_fault(state),
        "upkeep": state.maintenance.fault,
    }


def _control_database_fault(state: State) -> str | None:
    try:
        database.probe(state.control)
    except PoolError as error:
        LOG.warning("the control database failed its check: %s", reason_of(error))
        return status_of(error)
    return None


def _hot_log_fault(state: State) -> str | None:
    if state.hotlog.shortage is not None:
        return state.hotlog.shortage
    if state.hotlog.fault is not None:
        return f"the last posts could not be stored: {state.hotlog.fault}"
    try:
        backlog = state.maintenance.backlog()
    except HOT_LOG_ERRORS as error:
        return status_of(error)
    if backlog.rows >= state.settings.backlog_rows_max or backlog.bytes >= BACKLOG_BYTES_MAX:
        return f"{backlog.rows} hits wait to be loaded, and no more are accepted"
    if backlog.age_s(time.time()) > state.settings.late_s:
        return "hits have waited too long to be loaded"
    return state.reports.fault()


def _lake_fault(state: State) -> str | None:
    try:
        return state.maintenance.lake_fault()
    except HOT_LOG_ERRORS:
        return "cannot be compared with the hot log, which cannot be read"


_ALIVE = {"status": "ok"}
_READY = Readiness("ok", {"controlDatabase": "ok", "hotLog": "ok", "lake": "ok", "upkeep": "ok"})
_NOT_READY = Readiness("failed", {**_READY.checks, "hotLog": "hits have waited too long to be loaded"})
OPERATIONS = (
    Operation(
        id="alive",
        method="GET",
        path="/healthz",
        handler=alive,
        tag="Service",
        summary="Liveness",
        description="The process responds.",
        samples={"": f"curl {ADDRESS}/healthz"},
        responses=(Success(200, "The process is alive.", {JSON: Content({"const": _ALIVE}, _ALIVE)}),),
        key="none",
    ),
    Operation(
        id="ready",
        method="GET",
        path="/readyz",
        handler=ready,
        tag="Service",
        summary="Readiness",
        description="Whether the service can accept and count hits: each check, with its fault if it fails.",
        samples={"": f"curl {ADDRESS}/readyz"},
        responses=(
            Success(200, "Every check passes.", json_content(_READY)),
            Success(503, "A check fails.", json_content(_NOT_READY)),
        ),
        key="none",
    ),
    Operation(
        id="metrics",
        method="GET",
        path="/metrics",
        handler=metrics_text,
        tag="Service",
        summary="Metrics",
        description="Metrics for Prometheus. `/healthz`, `/readyz` and `/metrics` need no key: close these paths in"
        " your proxy if they should not be public.",
        samples={"": f"curl {ADDRESS}/metrics"},
        responses=(Success(200, "Prometheus text format.", {TEXT: Content()}),),
        key="none",
    ),
)
