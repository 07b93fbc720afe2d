"""Agent jobs of a project of its own, in the dashboard of a test."""

import html
import re
import time
from dataclasses import dataclass
from typing import Any

import httpx
from starlette.testclient import TestClient

from agent.jobs import configuration, queue, store
from agent.jobs.configuration import Configuration
from agent.jobs.queue import Lease, Outcome
from tests.api.dashboard.site import Dashboard, post
from warehouse.control import projects

LEASE_US = 60_000_000
REPOSITORY = "https://git.example/docs"
_KEY = re.compile(r'name="key" value="([^"]+)"')


@dataclass
class Jobs:
    """Jobs of the project `project`, as an owner sees them."""

    dashboard: Dashboard
    project: str
    owner: TestClient

    @classmethod
    def create(cls, dashboard: Dashboard, **settings: Any) -> "Jobs":
        """Create a project; without settings, its coding agent is the command `true`."""
        project = f"p{time.time_ns()}"
        projects.create(dashboard.engine, project, (), 0)
        jobs = cls(dashboard, project, dashboard.visitor("owner"))
        jobs.configure(**(settings or {"preset": "command", "command": ("true",)}))
        return jobs

    def configure(self, **settings: Any) -> None:
        chosen = configuration.changed(Configuration(repository=""), {"repository": REPOSITORY} | settings)  # type: ignore[typeddict-item]
        configuration.store(self.dashboard.engine, self.project, chosen)

    @property
    def path(self) -> str:
        return f"/projects/{self.project}/jobs"

    def get(self, path: str = "", status: int = 200, **headers: str) -> str:
        """Return the text of a page below the list of jobs."""
        response = self.owner.get(self.path + path, headers=headers)
        assert response.status_code == status, response.text
        return str(response.text)

    def send(self, path: str, prompt: str, **values: str) -> httpx.Response:
        """Send the form of the page: that of the list, or that of a job at `path`."""
        key = _KEY.search(self.get(path))
        assert key is not None
        return self.post(f"{path}/message" if path else "", prompt=prompt, **({"key": key[1]} | values))

    def post(self, path: str, **values: str) -> httpx.Response:
        return post(self.owner, self.path + path, **values)

    def add(self, prompt: str = "Fix it") -> str:
        """Queue a job that is too old to count for the quota, and return its id."""
        return store.create(self.dashboard.engine, self.project, prompt, None, 0).job.id

    def claim(self) -> Lease:
        """Claim the turn of the project that has waited longest."""
        while True:
            lease = queue.claim(self.dashboard.engine, "test", now_us(), LEASE_US)
            assert lease is not None
            if lease.job.project == self.project:
                return lease

    def end(self, reason: str | None = None, pull_request: str | None = None) -> None:
        """End the turn of the project that has waited longest."""
        queue.finish(self.dashboard.engine, self.claim(), Outcome(reason, pull_request), now_us())

    def ids(self) -> list[str]:
        return [job.id for job in store.list_page(self.dashboard.engine, self.project, None, 100, 0)[0]]


def now_us() -> int:
    return time.time_ns() // 1_000


def text_of(page: str) -> str:
    """Return the text of a page, without its tags and with single spaces."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())
