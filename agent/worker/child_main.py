"""Main module of the worker that `agent.worker.child_process` starts. It runs until the command pipe ends.

The command pipe ends when the parent closes it or dies.
"""

import json
import logging
import os
import select
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from agent.worker.child_process import STOP_CLAIMING
from agent.worker.threads import WorkerConfig, WorkerThreads
from warehouse.control import database

POLL_S = 0.2
"""Seconds between two checks for a received signal."""
COMMANDS_BYTES = 4096
"""Maximum size of one read from the command pipe, in bytes."""


class Reports:
    """Counts and log records, sent to the parent as JSON lines on standard output. Safe for use by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._file = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # output that a library prints must not look like a report

    def turn(self, seconds: float, succeeded: bool) -> None:
        self.send("turn", [seconds, succeeded])

    def delivery(self, outcome: str) -> None:
        self.send("delivery", outcome)

    def send(self, kind: str, content: Any) -> None:
        """Send one report. It is lost if the parent has ended."""
        with self._lock:
            try:
                self._file.write(json.dumps([kind, content]).encode() + b"\n")
                self._file.flush()
            except BrokenPipeError:
                return


class ToParent(logging.Handler):
    """Log handler that sends records to the parent, which formats them."""

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
            content |= {"exc_text": traceback, "fields": {"traceback": traceback}}  # for the text and JSON formats
        self._reports.send("log", content)


def main(commands: int) -> None:
    """Run turns until the command pipe ends or a signal arrives; then put the running turns back into the queue."""
    signals: list[int] = []  # not an Event: its lock may be held by the code that the signal handler interrupts
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: signals.append(received))
    reports = Reports()
    logging.basicConfig(handlers=[ToParent(reports)], level=logging.WARNING)
    logging.getLogger("readership").setLevel(logging.INFO)
    config = _read_config(reports)
    threads = WorkerThreads(config)
    threads.start()
    while not signals:
        if not select.select([commands], [], [], POLL_S)[0]:
            continue
        received = os.read(commands, COMMANDS_BYTES)
        if not received:
            break
        if STOP_CLAIMING in received:
            threads.stop_claiming()
        threads.wake()
    threads.close()
    config.engine.dispose()


def _read_config(reports: Reports) -> WorkerConfig:
    """Return the configuration that the parent wrote to standard input."""
    values = json.load(sys.stdin)
    return WorkerConfig(
        database.connect(values["database_url"]),
        Path(values["folder"]),
        values["environ"],
        values["slots"],
        values["lease_s"],
        values["retention_days"],
        Path(values["lake"]) if values["lake"] else None,
        reports.turn,
        reports.delivery,
    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
