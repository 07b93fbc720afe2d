"""Main module of the worker that `agent.worker.child_process` starts. It runs until the command pipe ends.

The command pipe ends when the parent closes it or dies.
"""

import json
import logging
import os
import select
import signal
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

from agent.worker.child_process import STOP_CLAIMING
from agent.worker.threads import WorkerConfig, WorkerThreads
from warehouse.control import database

POLL_S = 0.2
"""Seconds between two checks for a received signal."""
COMMANDS_BYTES = 4096
"""Maximum size of one read from the command pipe, in bytes."""


class Reports(logging.Handler):
    """Counts and log records, sent to the parent as JSON lines on standard output; the parent formats the records."""

    def __init__(self) -> None:
        super().__init__()
        self._file = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # output that a library prints must not look like a report

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record with its traceback, which the JSON format of the log has in a field of its own."""
        sent = {name: getattr(record, name) for name in ("name", "levelno", "levelname", "created")}
        sent |= {"msg": record.getMessage()}
        if record.exc_info:
            sent["exc_text"] = logging.Formatter().formatException(record.exc_info)
            sent["fields"] = {"traceback": sent["exc_text"]}
        self.send("log", sent)

    def send(self, name: str, *arguments: object) -> None:
        """Send one report. The report is lost if the parent has ended."""
        assert self.lock is not None
        with self.lock, suppress(BrokenPipeError):
            self._file.write(json.dumps([name, arguments]).encode() + b"\n")
            self._file.flush()


def main(commands: int) -> None:
    """Run turns until the command pipe ends or a signal arrives; then put the running turns back into the queue."""
    signals: list[int] = []  # not an Event: its lock may be held by the code that the signal handler interrupts
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: signals.append(received))
    reports = Reports()
    logging.basicConfig(handlers=[reports], level=logging.WARNING)
    logging.getLogger("readership").setLevel(logging.INFO)
    config = _read_config(reports)
    threads = WorkerThreads(config)
    if _obey(commands, threads, 0) and not signals:  # neither a command nor a signal arrived during the start
        threads.start()
    while not signals and _obey(commands, threads, POLL_S):
        pass
    threads.close()
    config.control.close()


def _obey(commands: int, threads: WorkerThreads, wait_s: float) -> bool:
    """Carry out the commands that arrive within `wait_s` seconds; return False if the command pipe has ended."""
    if not select.select([commands], [], [], wait_s)[0]:
        return True
    received = os.read(commands, COMMANDS_BYTES)
    if STOP_CLAIMING in received:
        threads.stop_claiming()
    threads.wake()
    return bool(received)


def _read_config(reports: Reports) -> WorkerConfig:
    url, folder, environ, slots, lease_s, retention_days, lake = json.loads(sys.stdin.buffer.read())
    control, lake = database.connect(url), Path(lake) if lake else None
    on_turn, on_delivery = partial(reports.send, "turn"), partial(reports.send, "delivery")
    return WorkerConfig(control, Path(folder), environ, slots, lease_s, retention_days, lake, on_turn, on_delivery)


if __name__ == "__main__":
    main(int(sys.argv[1]))
