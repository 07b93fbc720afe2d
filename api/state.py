"""The objects that all requests of one server process share."""

from dataclasses import dataclass, field
from functools import partial

from starlette.requests import Request

from agent.worker.child_process import ChildProcess
from api.accounts.keys import Keyring
from api.cache import Cache
from api.http.cors import RefusedOrigins
from api.http.rate_limit import RateLimit
from api.reference.reference import Reference
from api.settings import Settings
from ingest.hotlog.writer import HotLog
from ingest.verification.verifier import Verifier
from ingest.visitors.salts import Salts
from warehouse.control import projects
from warehouse.control.projects import Project
from warehouse.database.pool import Pool
from warehouse.maintenance.scheduler import Scheduler
from warehouse.report.reports import Reports

READINESS_TTL_S = 1.0
"""Time for which the response of `/readyz` is repeated, in seconds."""


@dataclass(frozen=True, slots=True)
class Intake:
    """What posts and beacons pass through. `secret` is the secret of the control database: see `store_secret`."""

    hotlog: HotLog
    verifier: Verifier
    rate_limit: RateLimit
    refused_origins: RefusedOrigins
    salts: Salts
    secret: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Background:
    """What works beside the requests: the maintenance thread, and the worker of agent jobs."""

    maintenance: Scheduler
    agents: ChildProcess


@dataclass(frozen=True, slots=True)
class State:
    """The shared objects, which the app's lifespan creates and closes.

    `limits_key` is the key of the hashes by which the limits on beacons and on sign-ins count clients.
    """

    settings: Settings
    reference: Reference
    control: Pool
    keyring: Keyring
    reports: Reports
    intake: Intake
    background: Background
    limits_key: bytes = field(repr=False)
    readiness: Cache[tuple[bytes, int]] = field(default_factory=lambda: Cache(1, ttl_s=READINESS_TTL_S))
    """The last response of `/readyz`: its content and status."""
    metrics: Cache[bytes] = field(default_factory=lambda: Cache(1, ttl_s=0))
    """Shared look-ups of the metrics, which are never cached: Prometheus gets the newest."""
    _projects: Cache[Project] = field(default_factory=Cache)

    async def project(self, id: str) -> Project:
        """Return the project of a beacon, from the cache if possible. Raises ProjectNotFound."""
        project = self._projects.get(id)
        if project is None:
            project = await self._projects.look_up(id, partial(projects.find, self.control, id))
        return project


def state_of(request: Request) -> State:
    """Return the state of the app. The function reads the scope, because `request.state` creates an object for each
    access."""
    state: State = request.scope["state"]["running"]
    return state
