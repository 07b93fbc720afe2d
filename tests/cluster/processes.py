"""Processes of a node: its service and its commands, which can be killed, paused and continued."""

import os
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.processes import forked
from tests.processes.forked import Forked
from tests.processes.running import PROJECT

_URL = re.compile(r"http://\S+?(?=,)")
APPLICATION = "PGAPPNAME"
"""Variable of libpq with the name of a process, by which PostgreSQL shows what process has a lock."""


@dataclass(eq=False)
class Process:
    """A service or a command of a node, in a process group of its own."""

    name: str
    forked: Forked
    log: Path
    is_paused: bool = False
    is_killed: bool = False
    _address: str | None = None

    def kill(self) -> None:
        """Send SIGKILL to the whole group, and wait until the process has ended."""
        self.is_killed = True
        self._signal(signal.SIGKILL)
        self.forked.wait(60)

    def pause(self) -> None:
        self.is_paused = True
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.is_paused = False
        self._signal(signal.SIGCONT)

    @property
    def is_running(self) -> bool:
        return self.forked.poll() is None

    @property
    def text(self) -> str:
        """Return what the process wrote to standard error."""
        return self.log.read_text(errors="replace")

    @property
    def address(self) -> str | None:
        """Return the URL that the service has printed, or None. The URL is cached, because each post needs it."""
        if self._address is None and (match := _URL.search(self.text)):
            self._address = match[0]
        return self._address

    def _signal(self, number: int) -> None:
        if self.is_running:
            os.killpg(self.forked.pid, number)


@dataclass(eq=False)
class Node:
    """A data folder, and the service over it, which is started again each time that it was killed."""

    name: str
    data: Path
    environ: Mapping[str, str]
    key: str = ""
    process: Process | None = None
    logs: list[Path] = field(default_factory=list)

    @property
    def auth(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    def start(self) -> None:
        """Start the service on a free port, without waiting for it."""
        self.process = self.run("serve", "--port", "0")

    def run(self, *arguments: str) -> Process:
        """Start a command over the data folder."""
        log = self.data.parent / f"{self.name}-{len(self.logs)}-{arguments[0]}.log"
        log.touch()
        self.logs.append(log)
        name = f"{self.name} {arguments[0]} {len(self.logs)}"
        environ = {**os.environ, **self.environ, APPLICATION: name}
        return Process(name, forked.start(forked.PROGRAM, ["--data", self.data, *arguments], environ, log), log)

    @property
    def url(self) -> str | None:
        """Return the URL of the project; None until the service has printed its address."""
        base_url = self.base_url
        return None if base_url is None else f"{base_url}/v1/analytics/{PROJECT}"

    @property
    def base_url(self) -> str | None:
        return None if self.process is None else self.process.address
