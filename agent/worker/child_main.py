"""Main module of the worker that `agent.worker.child_process` starts. It runs until the command pipe ends.

The command pipe ends when the parent closes it or dies.
"""

import logging
import os
import select
import signal
import sys
import threading
from pathlib import Path

from agent.jobs.webhook import Outcome
from agent.worker import messages
from agent.worker.child_process import STOP_CLAIMING
from agent.worker.messages import DeliveryReport, LogReport, Report, TurnReport
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
        self.send(TurnReport(seconds, succeeded))

    def delivery(self, outcome: Outcome) -> None:
        self.send(DeliveryReport(outcome))

    def send(self, report: Report) -> None:
        """Send one report. The report is lost if the parent has ended."""
        with self._lock:
            try:
                self._file.write(messages.encode(report))
                self._file.flush()
            except BrokenPipeError:
                return


class ToParent(logging.Handler):
    """Log handler that sends records to the parent, which formats them."""

    def __init__(self, reports: Reports) -> None:
        super().__init__()
        self._reports = reports

    def emit(self, record: logging.LogRecord) -> None:
        self._reports.send(LogReport.from_record(record))


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
    config.control.close()


def _read_config(reports: Reports) -> WorkerConfig:
    """Return the configuration that the parent wrote to standard input."""
    config = messages.decode_config(sys.stdin.buffer.read())
    return WorkerConfig(
        database.connect(config.database_url),
        Path(config.folder),
        config.environ,
        config.slots,
        config.lease_s,
        config.retention_days,
        Path(config.lake) if config.lake else None,
        reports.turn,
        reports.delivery,
    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
