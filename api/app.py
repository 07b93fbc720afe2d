"""The ASGI app: its routes and its lifespan."""

import asyncio
import hmac
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, closing
from datetime import UTC, datetime
from functools import partial
from threading import Lock
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Lifespan

from agent.worker.child_process import ChildProcess
from api.accounts.keys import Keyring
from api.background import open_scheduler, worker_config
from api.cache import Cache
from api.dashboard import pages_table
from api.dashboard.web import assets, error_page
from api.dashboard.web import routes as pages
from api.dashboard.web.visit import Visit
from api.http import problems
from api.http.cors import RefusedOrigins
from api.http.middleware import CLIENT_CLOSED, RequestMiddleware
from api.http.negotiation import Compression
from api.http.operation import Operation
from api.http.rate_limit import WINDOW_US, RateLimit
from api.reference.reference import Reference
from api.reports import records, threads
from api.routes import beacon, classify, goals, health, hits, job_history, jobs, prompts, script
from api.settings import Settings
from api.state import Background, Intake, State, state_of
from ingest.hits import row
from ingest.hotlog import new_values
from ingest.hotlog.beacon_shares import BeaconShares
from ingest.hotlog.new_values import NewValues
from ingest.hotlog.writer import HotLog
from ingest.verification import verifier as verifiers
from ingest.visitors.salts import Salts, open_salts
from warehouse.control import database, source_policies, store_secret
from warehouse.control.goals import of_project
from warehouse.control.policy import Periods
from warehouse.database.pool import Pool
from warehouse.database.postgresql import PostgresqlConnection
from warehouse.hotlog import batches
from warehouse.hotlog.connection import Server
from warehouse.integrity import completeness
from warehouse.query.snapshot import SnapshotReader
from warehouse.report.reports import Reports
from warehouse.report.source_warnings import SourceWarning

LOG = logging.getLogger("readership.service")
LOCK_WAIT_S = 4
"""Time for which a request waits for the lock of the control database before it is answered with 503, in seconds."""
OPERATIONS: tuple[Operation, ...] = (
    *hits.OPERATIONS,
    *beacon.OPERATIONS,
    *script.OPERATIONS,
    *(each.operation for each in records.REPORTS),
    *goals.OPERATIONS,
    *classify.OPERATIONS,
    *prompts.OPERATIONS,
    *jobs.OPERATIONS,
    *job_history.OPERATIONS,
    *health.OPERATIONS,
)
"""All operations, in the order of the reference."""


def _routes() -> tuple[Route, ...]:
    """Return one route per path. All methods of a path have the same handler."""
    methods: dict[tuple[str, Callable[..., Any]], list[str]] = {}
    for operation in OPERATIONS:
        if operation.handler is not None:
            methods.setdefault((operation.path, operation.handler), []).append(operation.method)
    return tuple(Route(path, handler, methods=names) for (path, handler), names in methods.items())


ROUTES = (*_routes(), *pages.routes(pages_table.PAGES), assets.ROUTE)


def create(settings: Settings, routes: tuple[Route, ...] = ROUTES) -> ASGIApp:
    """Return the app for a prepared data folder.

    The app changes nothing of its process but the metrics and the cache of user agents: signals, the log and garbage
    collection belong to `server`.
    """
    app = Starlette(
        routes=list(routes),
        middleware=[Middleware(Compression)],
        exception_handlers=dict.fromkeys(problems.TABLE, _handle),
        lifespan=_lifespan(settings),
    )
    app.router.redirect_slashes = False
    return RequestMiddleware(app, {route.endpoint: route.path for route in routes}, settings.base_url)


async def _handle(request: Request, error: Exception) -> Response:
    """Return the response to a request that raised an exception: a page for a browser, otherwise a problem."""
    if isinstance(error, ClientDisconnect):
        return Response(status_code=CLIENT_CLOSED)  # to nobody
    if error_page.is_wanted(request):
        visit = Visit(request, state_of(request), datetime.now(UTC))
        return await run_in_threadpool(error_page.respond, request, error, visit)
    return await problems.handle(request, error)


def _policies(control: Pool) -> Callable[[str], Periods]:
    """Return a function that reads the source policy of a project, from the cache if possible."""
    cached: Cache[Periods] = Cache()

    def read(project: str) -> Periods:
        known = cached.get(project)
        if known is None:
            cached.put(project, known := source_policies.periods(control, project))
        return known

    return read


def _warnings(stack: ExitStack, settings: Settings) -> Callable[[str], tuple[SourceWarning, ...]]:
    """Return a function that reads warnings about values and addresses of a project; the stack closes its stores."""
    hot, lock = stack.enter_context(closing(batches.connect(settings.hot_log))), Lock()
    salts = stack.enter_context(closing(_open_salts(settings)))

    def read(project: str) -> tuple[SourceWarning, ...]:
        with lock:
            return (*new_values.warnings(hot, project), *salts.warnings(project))

    return read


def _open_reports(stack: ExitStack, settings: Settings, control: Pool) -> Reports:
    reader, spill = SnapshotReader(settings.hot_log, settings.lake), settings.run / "spill"
    warnings = _warnings(stack, settings)
    reports = Reports(
        reader, settings.lake, spill, settings.cache_bytes, _policies(control), warnings, partial(of_project, control)
    )
    return stack.enter_context(closing(reports))


def _limits_key(settings: Settings, control: Pool) -> bytes:
    """Return the key of the hashes by which clients are counted. All nodes with one PostgreSQL database have one key.

    The key depends on the password of the database, because a copy of the database has the secret, but not the
    password. The password may also come from PGPASSWORD or ~/.pgpass.
    """
    with control.connect() as connection:
        password = connection.password if isinstance(connection, PostgresqlConnection) else None
    if password is None:
        return settings.run_secret
    return hmac.digest(store_secret.read(control), f"limits:{password}".encode(), "sha256")


def _open_rate_limit(stack: ExitStack, settings: Settings, key: bytes) -> RateLimit:
    """Open the limit on beacons, which all nodes share if the hot log is in PostgreSQL; the stack closes the limit."""
    shares = None
    if isinstance(settings.hot_log, Server):
        shares = BeaconShares(settings.hot_log, settings.beacons_per_minute, WINDOW_US)
        stack.enter_context(closing(shares))
    return stack.enter_context(closing(RateLimit(settings.limits, settings.beacons_per_minute, key, shares)))


def _open_intake(stack: ExitStack, settings: Settings, control: Pool, limits_key: bytes) -> Intake:
    verifier = verifiers.create(
        settings.ranges, is_reverse_dns=settings.reverse_dns, key_directories=settings.key_directories
    )
    stack.callback(verifier.close)
    rate_limit = _open_rate_limit(stack, settings, limits_key)
    refused_origins = stack.enter_context(closing(RefusedOrigins(settings.limits)))
    secret = store_secret.read(control)
    limit = NewValues(settings.new_values_per_day, secret)
    hotlog = HotLog(settings.hot_log, settings.backlog_rows_max, settings.lake.local, limit)
    salts = stack.enter_context(closing(_open_salts(settings)))
    return Intake(stack.enter_context(closing(hotlog)), verifier, rate_limit, refused_origins, salts, secret)


def _open_salts(settings: Settings) -> Salts:
    return open_salts(settings.database_url, settings.data, is_on=settings.visitors)


async def _open(stack: ExitStack, settings: Settings) -> State:
    """Open the parts of the app and start their threads; the stack closes them in reverse order."""
    control = database.connect(settings.database_url, busy_timeout_s=LOCK_WAIT_S)
    stack.callback(control.close)
    limits_key, loop = _limits_key(settings, control), asyncio.get_running_loop()
    reports = await loop.run_in_executor(threads.THREADS, _open_reports, stack, settings, control)
    # Opens the snapshot and loads the thread pool, which would take 40 ms of the first request.
    if (fault := await run_in_threadpool(reports.fault)) is not None:
        LOG.error("no report can be computed: %s", fault)
    maintenance = stack.enter_context(closing(open_scheduler(settings)))
    intake = _open_intake(stack, settings, control, limits_key)
    agents = stack.enter_context(closing(ChildProcess(worker_config(settings, control))))
    maintenance.start()
    agents.start()
    reference, keyring = Reference(OPERATIONS, settings.base_url), Keyring(control)
    background = Background(maintenance, agents)
    return State(settings, reference, control, keyring, reports, intake, background, limits_key)


def _lifespan(settings: Settings) -> Lifespan[Starlette]:
    """Return the lifespan: it starts the parts of the app, and closes them in reverse order, also if a start fails."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[dict[str, State]]:
        row.USER_AGENTS.resize(settings.user_agents_bytes)
        with ExitStack() as stack:
            with completeness.naming_damage(settings.hot_log):
                state = await _open(stack, settings)
            yield {"running": state}

    return lifespan
