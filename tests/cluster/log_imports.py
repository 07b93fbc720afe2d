"""Logs that grow, imported on all nodes at once."""

import random
from datetime import UTC, datetime
from pathlib import Path

from tests.cluster.expected import Expected
from tests.cluster.processes import Node, Process
from tests.cluster.senders import AGENT
from tests.processes.running import PROJECT

STAGED_LINES, FEW_LINES = 12_000, 600
"""Number of lines of a log whose chunks become staged files, and of one whose chunks go through the hot log."""
PATHS = 20
LINE = '192.0.2.{} - - [{}] "GET {} HTTP/1.1" 200 5 "-" "{}"\n'


class GrowingLog:
    """An access log in two parts: the second is written once the first may have been imported."""

    def __init__(self, file: Path, prefix: str, chance: random.Random, expected: Expected) -> None:
        self.file, self._prefix, self._expected = file, prefix, expected
        self._lines = chance.choice((STAGED_LINES, FEW_LINES))
        for number in range(PATHS):
            expected.add_possible(self._path(number, 1), self._lines // 2 // PATHS)
            expected.add_possible(self._path(number, 2), self._lines // 2 // PATHS)

    def write(self, part: int) -> None:
        """Append part 1 or 2."""
        time = datetime.now(UTC).strftime("%d/%b/%Y:%H:%M:%S +0000")
        with self.file.open("a") as file:
            for number in range(self._lines // 2):
                file.write(LINE.format(number % 250, time, self._path(number % PATHS, part), AGENT))

    def start(self, node: Node) -> Process:
        """Start an import of all that is written."""
        return node.run("import", "--format", "combined", PROJECT, str(self.file))

    def acknowledge(self) -> None:
        """Record that both parts are imported."""
        for number in range(PATHS):
            for part in (1, 2):
                self._expected.acknowledge(self._path(number, part))

    def _path(self, number: int, part: int) -> str:
        return f"{self._prefix}/log-{part}/{number}"
