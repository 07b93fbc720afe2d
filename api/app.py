"""The ASGI app: its routes and its lifespan."""

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, closing

from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp, Lifespan

from agent.worker.child_process import ChildProcess
from api import agent_worker
from api.http import problems
from api.http.middleware import RequestMiddleware
from api.http.rate_limit import RateLimit
from api.keys import Keyring
from api.maintenance import Maintenance
from api.reference import page
from api.routes import beacon, classify, health, hits, jobs, views
from api.settings import Settings
from api.state import State
from ingest.hotlog.writer import HotLog
from warehouse.control import database
from warehouse.query.report import HOT_COLUMNS, Reports
from warehouse.query.snapshot import SnapshotReader

ROUTES = (
    Route("/v1/analytics/{projectId}/hits", hits.Endpoint(), methods=["POST", "OPTIONS"]),
    Route("/v1/analytics/{projectId}/pixel.gif", hits.pixel, methods=["GET"]),
    Route("/v1/analytics/{projectId}/views", views.export, methods=["GET"]),
    Route("/v2/agent/{projectId}/job", jobs.create, methods=["POST"]),
    Route("/v2/agent/{projectId}/jobs", jobs.every, methods=["GET"]),
    Route("/v2/agent/{projectId}/job/{id}", jobs.read, methods=["GET"]),
    Route("/v2/agent/{projectId}/job/{id}/message", jobs.message, methods=["POST"]),
    Route("/v2/agent/{projectId}/job/{id}/cancel", jobs.cancel, methods=["POST"]),
    Route("/v2/agent/{projectId}/job/{id}/archive", jobs.archive, methods=["POST"]),
    Route("/v2/agent/{projectId}/job/{id}/log", jobs.log, methods=["GET"]),
    Route("/v1/classify", classify.classify_user_agent, methods=["GET"]),
    Route("/beacon.js", beacon.beacon, methods=["GET"]),
    Route("/healthz", health.alive, methods=["GET"]),
    Route("/readyz", health.ready, methods=["GET"]),
    Route("/metrics", health.metrics_text, methods=["GET"]),
    Route("/openapi.json", page.openapi, methods=["GET"]),
    Route("/", page.home, methods=["GET"]),
    Route("/docs", page.page, methods=["GET"]),
)


def create(settings: Settings, routes: tuple[Route, ...] = ROUTES) -> ASGIApp:
    """Return the app for a prepared data folder.

    The app changes nothing of its process but the metrics: signals, the log and garbage collection belong to `server`.
    """
    app = Starlette(
        routes=list(routes),
        exception_handlers=dict.fromkeys(problems.TABLE, problems.answer),
        lifespan=_lifespan(settings),
    )
    app.router.redirect_slashes = False
    return RequestMiddleware(app, {route.endpoint: route.path for route in routes}, settings.base_url)


def _lifespan(settings: Settings) -> Lifespan[Starlette]:
    """Return the lifespan: it starts the parts of the app, and closes them in reverse order, also if a start fails."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[dict[str, State]]:
        with ExitStack() as ending:
            engine = database.connect(settings.database_url)
            ending.callback(engine.dispose)
            spill = settings.run / "spill"
            reader = SnapshotReader(settings.hot_log, settings.lake, HOT_COLUMNS)
            reports = ending.enter_context(closing(Reports(reader, spill, settings.cache_bytes)))
            rate_limit = ending.enter_context(
                closing(RateLimit(settings.limits, settings.beacons_per_minute, settings.run_secret))
            )
            maintenance = ending.enter_context(closing(Maintenance(settings)))
            hotlog = ending.enter_context(closing(HotLog(settings.hot_log, settings.backlog_rows_max)))
            agents = ending.enter_context(closing(ChildProcess(agent_worker.config(settings, engine))))
            maintenance.start()
            agents.start()
            keyring = Keyring(engine)
            yield {"running": State(settings, engine, keyring, hotlog, reports, rate_limit, maintenance, agents)}

    return lifespan
