"""The nodes and their stores."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.cluster import stores
from tests.cluster.processes import Node, Process
from tests.cluster.stores import Stores
from tests.processes.running import new_key
from tests.processes.waiting import until

RECOVERY_S = 600
"""Time within which all nodes must be ready after the last fault, in seconds."""
SETTINGS = {"READERSHIP_JOBS_AT_ONCE": "0", "READERSHIP_LOAD_EVERY_S": "5", "READERSHIP_LOAD_ROWS": "500"}
READERS = "readers"
"""Name of the data folder of the readers."""


@dataclass
class Cluster:
    """Nodes that share the stores. `commands` are the commands that run beside their services."""

    folder: Path
    stores: Stores
    nodes: list[Node]
    commands: list[Process] = field(default_factory=list)

    def start(self) -> None:
        for node in self.nodes:
            node.start()
        self.wait_until_ready()

    def wait_until_ready(self, watch: Callable[[], None] = lambda: None) -> None:
        """Wait until each service answers that it is ready. `watch` is called meanwhile, repeatedly."""

        def is_ready(node: Node) -> bool:
            watch()
            with suppress(httpx.TransportError):
                return node.base_url is not None and httpx.get(f"{node.base_url}/readyz", timeout=30).status_code == 200
            return False

        for node in self.nodes:
            until(lambda node=node: is_ready(node), within_s=RECOVERY_S)  # type: ignore[misc]

    def run(self, node: Node, *arguments: str) -> Process:
        """Start a command that `close` ends."""
        process = node.run(*arguments)
        self.commands.append(process)
        return process

    @property
    def processes(self) -> list[Process]:
        """Return the services and commands that run."""
        services = [node.process for node in self.nodes if node.process]
        return [each for each in (*services, *self.commands) if each.is_running]

    def close(self) -> None:
        for process in self.processes:
            process.kill()


@contextmanager
def running(folder: Path, count: int, *, is_remote: bool) -> Iterator[Cluster]:
    """Yield a cluster, and end all of its processes."""
    with stores.running(folder, is_remote=is_remote) as both, _environ(both.direct):
        environ = {**SETTINGS, **both.environ}
        nodes = [Node(f"node{number}", folder / f"node{number}", environ) for number in range(1, count + 1)]
        for data in (*(node.data for node in nodes), folder / READERS):
            data.mkdir()
            if not is_remote:
                (data / "lake").symlink_to(folder / "lake")
        key = new_key(nodes[0].data, environ={**environ, **both.direct})
        for node in nodes:
            node.key = key
        cluster = Cluster(folder, both, nodes)
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.close()


@contextmanager
def _environ(values: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
