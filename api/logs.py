"""The log of a process, on standard error: JSON if it is piped, short text on a terminal."""

import io
import logging
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

import msgspec

ERRORS = logging.getLogger("readership.error")
IS_TERMINAL = sys.stderr.isatty()
_ENCODER = msgspec.json.Encoder()
OUTAGE_EVERY_S = 60
"""Time between two lines about one outage, in seconds. An outage ends after this time without a refused request."""

Later = Callable[[float, Callable[[], None]], None]
"""Function that calls a function once, after a number of seconds."""


class JsonLines(logging.Formatter):
    """One JSON object per record: time, level, logger, message, the record's `fields`, and the traceback if any."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return _ENCODER.encode(line).decode()


class StandardError(logging.Handler):
    """Handler that writes to standard error without a buffer, and drops a record that a full disk does not accept.

    With a buffer, the supervisor could not start a process on a full disk: multiprocessing flushes `sys.stderr` before
    it starts a process, and a buffer with text that cannot be written makes every flush fail.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        text = f"{self.format(record)}\n"
        try:
            file = sys.stderr.fileno()
        except io.UnsupportedOperation:  # a stream in memory
            sys.stderr.write(text)
            return
        with suppress(OSError):
            os.write(file, text.encode(errors="backslashreplace"))


def configure(level: str = "info") -> None:
    """Log to standard error: records of this program from `level` up, one of `environment.LOG_LEVELS`.

    Records of libraries are logged from `warning` up. Python's warnings and uncaught errors become records, too.
    """
    handler = StandardError()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S") if IS_TERMINAL else JsonLines())
    least = logging.getLevelNamesMapping()[level.upper()]
    logging.basicConfig(handlers=[handler], level=max(least, logging.WARNING), force=True)
    logging.getLogger("readership").setLevel(least)
    logging.captureWarnings(capture=True)
    sys.excepthook = lambda kind, error, trace: _log_uncaught(error, threading.main_thread())
    threading.excepthook = lambda caught: _log_uncaught(caught.exc_value, caught.thread)


def _log_uncaught(error: BaseException | None, thread: threading.Thread | None) -> None:
    if isinstance(error, KeyboardInterrupt | SystemExit):
        return
    name = thread.name if thread else "?"
    ERRORS.critical("uncaught error in thread %s: %r", name, type(error).__name__, exc_info=error)


def _start_timer(seconds: float, report: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, report)
    timer.daemon = True
    timer.start()


class Outages:
    """Refused requests of one process, counted by outage. Safe to call from several threads.

    The first request of an outage is logged at once, and then the number of the others every OUTAGE_EVERY_S. A line for
    each request would fill the log of a busy service within minutes.
    """

    def __init__(self, later: Later = _start_timer) -> None:
        self._later = later
        self._lock = threading.Lock()
        self._refused: dict[str, int] = {}

    def refuse(self, outage: str, reason: str, request_id: str) -> None:
        """Count a refused request. `outage` names the store that does not answer, and `reason` is its error."""
        with self._lock:
            is_first = outage not in self._refused
            self._refused[outage] = 0 if is_first else self._refused[outage] + 1
        if is_first:
            ERRORS.error("%s: %s", outage, reason, extra={"fields": {"requestId": request_id}})
            self._later(OUTAGE_EVERY_S, partial(self._report, outage))

    def _report(self, outage: str) -> None:
        with self._lock:
            count = self._refused.pop(outage)
            if count:
                self._refused[outage] = 0
        if count:
            ERRORS.error("%s: requests refused in the last %s seconds: %s", outage, OUTAGE_EVERY_S, f"{count:,}")
            self._later(OUTAGE_EVERY_S, partial(self._report, outage))
