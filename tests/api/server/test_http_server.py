"""The HTTP server of one process, with an app that only has a lifespan."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.types import Receive, Scope, Send

from api import settings
from api.server import http_server, serve

SIGNALS = signal.SIGTERM, signal.SIGINT


@pytest.fixture(autouse=True)
def _handlers_of_the_tests() -> Iterator[None]:
    handlers = [signal.getsignal(number) for number in SIGNALS]
    yield
    for number, handler in zip(SIGNALS, handlers, strict=True):
        signal.signal(number, handler)


def test_signal_that_arrives_while_the_app_starts_stops_the_claims_of_agent_jobs(tmp_path: Path) -> None:
    called: list[str] = []
    agents = SimpleNamespace(stop_claiming=lambda: called.append("stop"))

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        scope["state"]["running"] = SimpleNamespace(background=SimpleNamespace(agents=agents))
        os.kill(os.getpid(), signal.SIGTERM)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        called.append("end")
        await send({"type": "lifespan.shutdown.complete"})

    http_server.run(lambda: app, serve.listen("127.0.0.1", 0), settings.read({}, tmp_path))
    assert called[:2] == ["stop", "end"]
