"""Random faults: kills, pauses, lost locks, and outages of the stores."""

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.cluster.cluster import Cluster
from tests.cluster.processes import Node, Process

FAULT_EVERY_S = (0.05, 0.4)
DOWN_S = (0.1, 2.0)
"""Time for which a killed service is down, in seconds."""
PAUSE_S = (0.3, 3.0)
"""Time for which a process is paused, in seconds: PostgreSQL ends its open transaction after two."""
AWAY_S = (1.0, 3.0)
"""Time for which a store is unreachable, in seconds."""
COMMANDS = ("flush", "compact", "flush", "rebuild")
COMMANDS_MAX = 3
HOLDER_SEARCH_S = 1.0


@dataclass
class Faults:
    """Faults of one round. `done` counts them. `log_import` starts an import on a node."""

    cluster: Cluster
    chance: random.Random
    log_import: Callable[[Node], Process]
    done: Counter[str] = field(default_factory=Counter)
    unexpected: list[str] = field(default_factory=list)
    _undo: list[tuple[float, Callable[[], None]]] = field(default_factory=list)

    def run(self, seconds: float, outages_of: Sequence[str] = ()) -> None:
        """Cause faults for a time, then undo those that last. Each store in `outages_of` is unreachable once."""
        end_s = time.monotonic() + seconds
        outages = {time.monotonic() + self.chance.uniform(0, seconds / 2): name for name in outages_of}
        while (now_s := time.monotonic()) < end_s:
            self._undo_due(now_s)
            self.watch()
            for due_s in [each for each in outages if each <= now_s]:
                self._begin_outage(outages.pop(due_s))
            self._next()
            time.sleep(self.chance.uniform(*FAULT_EVERY_S))
        self._undo_due(float("inf"))

    def watch(self) -> None:
        """Start each service that has ended; record one that was not killed, unless a store is unreachable then."""
        for node in self.cluster.nodes:
            process = node.process
            if process is None or process.is_running or process.is_killed:
                continue
            if node.url is not None:
                self.unexpected.append(f"{process.name} ended by itself: {process.text[-500:]}")
            self.done["restart of a service that did not start"] += 1
            node.start()

    def _next(self) -> None:
        name = self.chance.choice(
            (
                "kill service",
                "pause service",
                "command",
                "command",
                "import",
                "import",
                "kill command",
                "pause command",
                "lock",
                "lock",
            )
        )
        {
            "kill service": self._kill_service,
            "pause service": self._pause_service,
            "command": self._command,
            "import": lambda: self._run(self.log_import),
            "kill command": self._kill_command,
            "pause command": self._pause_command,
            "lock": self._pause_holder,
        }[name]()

    def _services(self) -> list[Process]:
        return [
            node.process
            for node in self.cluster.nodes
            if node.process and node.process.is_running and not node.process.is_paused and node.url
        ]

    def _commands(self) -> list[Process]:
        return [each for each in self.cluster.commands if each.is_running and not each.is_paused]

    def _kill_service(self) -> None:
        services = self._services()
        if not services:
            return
        victim = self.chance.choice(services)
        victim.kill()
        self.done["kill service"] += 1
        (node,) = (each for each in self.cluster.nodes if each.process is victim)
        self._later(self.chance.uniform(*DOWN_S), node.start)

    def _pause_service(self) -> None:
        if services := self._services():
            self._pause(self.chance.choice(services))
            self.done["pause service"] += 1

    def _command(self) -> None:
        self._run(lambda node: self.cluster.run(node, self.chance.choice(COMMANDS)))

    def _run(self, start: Callable[[Node], Process]) -> None:
        if len(self._commands()) < COMMANDS_MAX:
            start(self.chance.choice(self.cluster.nodes))
            self.done["command"] += 1

    def _kill_command(self) -> None:
        if commands := self._commands():
            self.chance.choice(commands).kill()
            self.done["kill command"] += 1

    def _pause_command(self) -> None:
        if commands := self._commands():
            self._pause(self.chance.choice(commands))
            self.done["pause command"] += 1

    def _pause_holder(self) -> None:
        """Pause the process that has the lake's lock, in the middle of its work, and revoke its lock meanwhile."""
        if (victim := self._holder()) is None:
            return
        self._pause(victim)
        if self.cluster.stores.revoke_lock() == victim.name:
            self.done["lock revoked in a pause"] += 1

    def _holder(self) -> Process | None:
        if not self.cluster.stores.server.is_running:
            return None
        end_s = time.monotonic() + HOLDER_SEARCH_S
        while time.monotonic() < end_s:
            holder = self.cluster.stores.lock_holder()
            if holder is not None:
                victims = [each for each in self.cluster.processes if each.name == holder[0] and not each.is_paused]
                time.sleep(self.chance.uniform(0, 0.1))
                return victims[0] if victims else None
            time.sleep(0.005)
        return None

    def _pause(self, victim: Process) -> None:
        victim.pause()
        self._later(self.chance.uniform(*PAUSE_S), victim.resume)

    def _begin_outage(self, name: str) -> None:
        stores = self.cluster.stores
        if name == "postgresql":
            stores.server.crash()
            self._later(self.chance.uniform(*AWAY_S), stores.server.start)
        elif stores.way is not None:
            self.chance.choice((stores.way.cut, stores.way.silence))()
            self._later(self.chance.uniform(*AWAY_S), stores.way.restore)
        self.done[f"outage of {name}"] += 1

    def _later(self, seconds: float, undo: Callable[[], None]) -> None:
        self._undo.append((time.monotonic() + seconds, undo))

    def _undo_due(self, now_s: float) -> None:
        due = [undo for due_s, undo in self._undo if due_s <= now_s]
        self._undo = [each for each in self._undo if each[0] > now_s]
        for undo in due:
            undo()
