"""What the child process of `agent.worker.child_process` runs: a worker, until the command pipe or its parent ends."""

import json
import logging
import os
import select
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from agent.worker.child_process import REST
from agent.worker.worker import Worker, WorkerConfig
from warehouse.control import database

LOOK_S = 0.2
"""Seconds until a signal is noticed."""
COMMANDS_BYTES = 4096


class Reports:
    """Counts and log records, sent to the parent as JSON lines. Any thread may send."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._file = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever a library prints is no report

    def turn(self, seconds: float, succeeded: bool) -> None:
        self.send("turn", [seconds, succeeded])

    def delivery(self, outcome: str) -> None:
        self.send("delivery", outcome)

    def send(self, kind: str, content: Any) -> None:
        """Send one report. It is lost if the parent is gone."""
        with self._lock:
            try:
                self._file.write(json.dumps([kind, content]).encode() + b"\n")
                self._file.flush()
            except BrokenPipeError:
                return


class ToParent(logging.Handler):
    """Hands log records to the parent, which knows the format and where they go."""

    def __init__(self, reports: Reports) -> None:
        super().__init__()
        self._reports = reports

    def emit(self, record: logging.LogRecord) -> None:
        content: dict[str, Any] = {
            "name": record.name,
            "levelno": record.levelno,
            "levelname": record.levelname,
            "created": record.created,
            "msg": record.getMessage(),
        }
        if record.exc_info:
            traceback = logging.Formatter().formatException(record.exc_info)
            content |= {"exc_text": traceback, "fields": {"traceback": traceback}}  # for a terminal and for JSON
        self._reports.send("log", content)


def main(commands: int) -> None:
    """Work until the command pipe ends or a signal comes; then put the turns that run back."""
    ends: list[int] = []  # not an Event: its lock may be held where a handler finds the program
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda given, _: ends.append(given))
    reports = Reports()
    logging.basicConfig(handlers=[ToParent(reports)], level=logging.WARNING)
    logging.getLogger("readership").setLevel(logging.INFO)
    given = json.load(sys.stdin)
    engine = database.connect(given["database_url"])
    worker = Worker(
        WorkerConfig(
            engine,
            Path(given["folder"]),
            given["environ"],
            given["slots"],
            given["lease_s"],
            given["retention_days"],
            Path(given["lake"]) if given["lake"] else None,
            reports.turn,
            reports.delivery,
        )
    )
    worker.start()
    while not ends:
        if not select.select([commands], [], [], LOOK_S)[0]:
            continue
        found = os.read(commands, COMMANDS_BYTES)
        if not found:
            break
        if REST in found:
            worker.take_no_more()
        worker.wake()
    worker.close()
    engine.dispose()


if __name__ == "__main__":
    main(int(sys.argv[1]))
