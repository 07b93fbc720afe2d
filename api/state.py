"""What a worker keeps while it runs, as the routes see it."""

import time
from dataclasses import dataclass, field

import sqlalchemy as sa
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from agent.worker.child_process import WorkerProcess
from api.http.rate_limit import RateLimit
from api.keys import BELIEVED_MAX, BELIEVED_S, Keyring
from api.maintenance import Maintenance
from api.settings import Settings
from ingest.hotlog.writer import HotLog
from warehouse.control import projects
from warehouse.control.projects import Project
from warehouse.query.report import Views


@dataclass(frozen=True, slots=True)
class State:
    """One worker's: made at its start, closed at its end."""

    settings: Settings
    control: sa.Engine
    keyring: Keyring
    hotlog: HotLog
    views: Views
    rate_limit: RateLimit
    maintenance: Maintenance
    agents: WorkerProcess
    _projects: dict[str, tuple[Project, float]] = field(default_factory=dict)

    async def project(self, id: str) -> Project:
        """The project of a beacon; believed for BELIEVED_S without a look-up. Raises ProjectNotFound."""
        project, until_s = self._projects.get(id, (None, 0.0))
        if project is None or time.monotonic() >= until_s:
            project = await run_in_threadpool(projects.find, self.control, id)
            if len(self._projects) >= BELIEVED_MAX:
                self._projects.clear()
            self._projects[id] = (project, time.monotonic() + BELIEVED_S)
        return project


def state_of(request: Request) -> State:
    """Past `request.state`, which makes an object each time it is asked for."""
    state: State = request.scope["state"]["running"]
    return state
