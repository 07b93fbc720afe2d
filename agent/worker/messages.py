"""Messages between a server process and its worker, as JSON. Both ends run the same version."""

import json
import logging
from collections.abc import Mapping

import msgspec

from agent.jobs.webhook import Outcome


class ChildConfig(msgspec.Struct, frozen=True):
    """Fields of `agent.worker.threads.WorkerConfig` for a worker in a child process."""

    database_url: str
    folder: str
    environ: Mapping[str, str]
    slots: int
    lease_s: float
    retention_days: int
    lake: str | None


class TurnReport(msgspec.Struct, frozen=True, tag="turn"):
    """End of a turn."""

    seconds: float
    succeeded: bool


class DeliveryReport(msgspec.Struct, frozen=True, tag="delivery"):
    """Attempt to deliver a webhook message."""

    outcome: Outcome


class LogReport(msgspec.Struct, frozen=True, tag="log"):
    """Log record, with the names of `logging.LogRecord`."""

    name: str
    levelno: int
    levelname: str
    created: float
    msg: str
    exc_text: str | None = None

    @classmethod
    def from_record(cls, record: logging.LogRecord) -> "LogReport":
        """Return the report of a record, with the traceback of its exception."""
        traceback = logging.Formatter().formatException(record.exc_info) if record.exc_info else None
        return cls(record.name, record.levelno, record.levelname, record.created, record.getMessage(), traceback)

    def record(self) -> logging.LogRecord:
        """Return the record, with its traceback for the text format and for the JSON format of the log."""
        fields = {"fields": {"traceback": self.exc_text}} if self.exc_text else {}
        return logging.makeLogRecord(msgspec.structs.asdict(self) | fields)


Report = TurnReport | DeliveryReport | LogReport


def encode(message: ChildConfig | Report) -> bytes:
    """Return a message as one line of JSON.

    `json` escapes bytes of the environment that are not UTF-8, and msgspec's own encoder refuses them.
    """
    return json.dumps(msgspec.to_builtins(message)).encode() + b"\n"


def decode_config(line: bytes) -> ChildConfig:
    return msgspec.convert(json.loads(line), ChildConfig)


def decode_report(line: bytes) -> Report:
    report: Report = msgspec.convert(json.loads(line), Report)
    return report
