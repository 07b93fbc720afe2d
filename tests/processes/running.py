"""A service in its own processes, and commands, for tests."""

import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from click.testing import CliRunner

from agent.jobs import configuration, store
from agent.jobs.configuration import Configuration
from api import data_folder, settings
from api.accounts import keys
from api.cli.main import main
from tests.processes import forked
from tests.processes.forked import Forked
from warehouse.control import database, projects

READY_S = 60
PROJECT = "site"
COMMAND = str(Path(sys.executable).parent / "readership")
SERVING = {"serve", "worker", "demo"}
"""Commands that do not end by themselves."""

services: list["Running"] = []
"""The services of this process, in the order of their first starts."""


@dataclass
class Running:
    """The command `readership serve` over a data folder with the project `site` and a key. It can be restarted."""

    data: Path
    processes: int = 1
    environ: dict[str, str] = field(default_factory=dict)
    key: str = ""
    url: str = ""
    process: subprocess.Popen[bytes] | Forked | None = None

    @property
    def log(self) -> Path:
        return self.data.parent / f"{self.data.name}.log"

    @property
    def hits(self) -> str:
        return f"{self.url}/v1/analytics/{PROJECT}/hits"

    @property
    def events(self) -> str:
        return f"{self.url}/v1/analytics/{PROJECT}/events"

    @property
    def views(self) -> str:
        return f"{self.url}/v1/analytics/{PROJECT}/views"

    @property
    def auth(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    def start(self) -> "Running":
        """Start the service on a free port, and wait until it answers."""
        if not self.key:
            self.key = new_key(self.data, environ=self.environ)
        self.log.write_text("")
        arguments = ["--data", self.data, "serve", "--port", "0", "--workers", str(self.processes)]
        environ = {**os.environ, **self.environ}
        if forked.can_fork(self.environ):
            self.process = forked.start(forked.PROGRAM, arguments, environ, self.log)
        else:
            with self.log.open("a") as log:
                self.process = subprocess.Popen([COMMAND, *arguments], stderr=log, env=environ, start_new_session=True)
        if not any(each is self for each in services):
            services.append(self)
        self._wait()
        return self

    def get(self, query: str = "") -> Any:
        """Return the views export."""
        answer = httpx.get(f"{self.views}?{query}", headers=self.auth, timeout=60)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, content: Any, **headers: str) -> httpx.Response:
        """Post JSON with the key."""
        return httpx.post(self.hits, json=content, headers={**self.auth, **headers}, timeout=60)

    def stop(self) -> int:
        """Stop the service with SIGTERM, and return its exit status."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(READY_S)

    def kill(self) -> None:
        """Send SIGKILL to all processes of the service at once."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(READY_S)

    def kill_if_running(self) -> None:
        """Send SIGKILL to all processes of the service, unless it has ended."""
        if self.process is not None and self.process.poll() is None:
            self.kill()

    def run(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a command over the data folder, in a process of its own if it serves or has options of `subprocess`."""
        run = readership_process if options or arguments[0] in SERVING else readership
        return run("--data", str(self.data), *arguments, **{"env": {**os.environ, **self.environ}, **options})

    def _wait(self) -> None:
        assert self.process is not None
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline and self.process.poll() is None:
            match = re.search(r"http://\S+?(?=,)", self.log.read_text())
            if match:
                self.url = match[0]
                assert httpx.get(f"{self.url}/readyz", timeout=READY_S).status_code == 200
                return
            time.sleep(0.02)
        raise AssertionError(f"the service did not get ready: {self.log.read_text()}")


def new_key(
    data: Path, project: str = PROJECT, scope: keys.Scope = "write", environ: Mapping[str, str] | None = None
) -> str:
    """Create a key of a project. A missing project is created; it allows every origin."""
    chosen = settings.read(environ or {}, data)
    if not chosen.control.exists():  # preparing again takes 20 ms of processor time
        data_folder.prepare(chosen)
    engine = database.connect(chosen.database_url)
    if project not in [each.id for each in projects.list_all(engine)]:
        projects.create(engine, project, ("*",), int(time.time()))
    token = keys.create(engine, project, "test", scope, None, int(time.time()))[1]
    engine.close()
    return token


def new_job(data: Path, project: str = PROJECT) -> str:
    """Create an active job in a project, and configure a repository if needed. The job is too old to use quota."""
    engine = database.connect(settings.read({}, data).database_url)
    changes = {"repository": "https://git.example/docs", "preset": "command", "command": ("true",)}
    chosen = configuration.changed(Configuration(repository=""), changes)
    configuration.store(engine, project, chosen)
    id = store.create(engine, project, "Say hello", None, 0).job.id
    engine.close()
    return id


@contextmanager
def memory_unlimited() -> Iterator[None]:
    """Remove the limit that `readership sql` sets in the block: Chromium would inherit it, and its renderers crash."""
    limits = resource.getrlimit(resource.RLIMIT_DATA)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, limits)


def readership(*arguments: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command in this process, which saves the 0.4 s that a process needs to import its modules.

    The command must not be one that serves: it would not end. Beside a service in this process, an import needs
    `readership_process`: its forked processes inherit the locks of the service's threads until they end.
    """
    assert not SERVING & {*arguments[:3]}
    runner = CliRunner(env=dict.fromkeys(os.environ) | dict(env) if env is not None else None)
    with memory_unlimited():
        result = runner.invoke(main, arguments, prog_name="readership")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return subprocess.CompletedProcess(arguments, result.exit_code, result.stdout, result.stderr)


def readership_process(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, its output captured as text."""
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, timeout=120, check=False, **options)
