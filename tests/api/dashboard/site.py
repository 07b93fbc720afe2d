"""The dashboard of a data folder in the test's own process, with users of both roles, a project and hits."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from starlette.testclient import TestClient

from api import app, settings
from api.accounts import sessions, users
from api.accounts.users import Role
from tests.processes.running import PROJECT, new_key
from warehouse.control import database
from warehouse.database.pool import Pool

SAME_SITE = {"Sec-Fetch-Site": "same-origin"}
"""Header of the browser for a form that a page of the dashboard posts."""
HOST = "http://testserver"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:155.0) Gecko/20100101 Firefox/155.0"


@dataclass
class Dashboard:
    """The dashboard in a TestClient. `key` is a write key of the project `site`, which allows every origin."""

    data: Path
    client: TestClient
    engine: Pool
    key: str

    def visitor(self, role: Role | None, name: str | None = None) -> TestClient:
        """Return a client with a session of a new user of this role; without a session for None."""
        client = TestClient(self.client.app, follow_redirects=False)
        if role is not None:
            user = users.create(self.engine, name or f"{role} {time.time_ns()}", role, None, int(time.time()))
            client.cookies.set("readership_session", sessions.start(self.engine, user.id, int(time.time())))
        # One lifespan serves all clients: its state is that of the first client.
        client.app_state.update(self.client.app_state)
        return client

    def post_hits(
        self, *hits: Mapping[str, Any], project: str = PROJECT, key: str | None = None, kind: str = "hits"
    ) -> None:
        """Store page views, or events, with the key of a server."""
        url, headers = f"/v1/analytics/{project}/{kind}", {"Authorization": f"Bearer {key or self.key}"}
        response = self.client.post(url, json=list(hits), headers=headers)
        assert response.status_code == 202, response.text
        assert response.json()["accepted"] == len(hits), response.text

    def get_report(self, report: str) -> Any:
        """Return the answer of the API, such as that of `views?path=/a`."""
        headers = {"Authorization": f"Bearer {self.key}"}
        response = self.client.get(f"/v1/analytics/{PROJECT}/{report}", headers=headers)
        assert response.status_code == 200, response.text
        return response.json()


@contextmanager
def opened(data: Path, environ: Mapping[str, str] | None = None) -> Iterator[Dashboard]:
    """Run the app over a new data folder until the block ends."""
    key = new_key(data)
    chosen = settings.read(environ or {}, data)
    engine = database.connect(chosen.database_url)
    with TestClient(app.create(chosen), follow_redirects=False) as client:
        yield Dashboard(data, client, engine, key)
    engine.close()


def post(client: TestClient, path: str, **values: str) -> httpx.Response:
    """Post a form as a page of the dashboard does."""
    response: httpx.Response = client.post(path, data=values, headers=SAME_SITE)
    return response
