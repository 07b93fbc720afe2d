"""What can go wrong on the way in. Messages are for the sender."""


class IngestError(Exception):
    """Base of the errors of the way in."""


class InvalidBody(IngestError):
    """The body as a whole is not hits: not JSON, empty, or not decompressible."""


class BodyTooLarge(IngestError):
    """The body, or what it decompresses to, is over a limit of bytes or hits."""


class InvalidField(IngestError):
    """One field of a hit is missing or not of the form asked for."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class InvalidLine(IngestError):
    """A line of an access log is not of its format."""


class InvalidLog(IngestError):
    """An access log as a whole cannot be read."""


class InvalidFormat(IngestError):
    """What is said of a log's format cannot be used to read it."""


class UnknownFormat(IngestError):
    """A log is of no known format, or a format is asked for that is not known."""


class LedgerIncomplete(IngestError):
    """Lines may have been imported before, and the record of that was lost."""


class LogReadElsewhere(IngestError):
    """Another import reads the same log at the same time."""


class IdempotencyMismatch(IngestError):
    """The Idempotency-Key was used before, for another body."""


class Overloaded(IngestError):
    """Nothing was kept: too much waits to be stored. The sender may try again after `retry_after_s`."""

    def __init__(self, reason: str, retry_after_s: int) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s
