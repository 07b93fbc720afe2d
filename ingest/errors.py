"""Errors of this package. Their messages are for the sender of the hits or the owner of the log."""

RETRY_AFTER_S = 5
"""Time in seconds after which the sender of a refused post may retry."""


class IngestError(Exception):
    """Base class of the errors of this package."""


class InvalidBody(IngestError):
    """The body as a whole is invalid: it is not JSON, has no hit, or cannot be decompressed."""


class BodyTooLarge(IngestError):
    """The body, compressed or not, is larger than a limit on bytes or hits."""


class InvalidField(IngestError):
    """One field of a hit is missing or invalid."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class InvalidLine(IngestError):
    """A line of an access log does not match the format of the log."""


class InvalidLog(IngestError):
    """An access log as a whole cannot be read."""


class InvalidFormat(IngestError):
    """An nginx log_format lacks a required variable, or is too long."""


class UnknownFormat(IngestError):
    """The format of a log cannot be detected, or the requested format does not exist."""


class InvalidAddressList(IngestError):
    """A list of the IP addresses of an agent is not in the expected format, or was changed after it was written."""


class ListUnavailable(IngestError):
    """An address list cannot be downloaded from its operator, or its download cannot be used."""


class DirectoryUnavailable(IngestError):
    """The key directory of a signing agent cannot be fetched."""


class LedgerIncomplete(IngestError):
    """Lines may have been imported before, but the record of earlier imports was lost."""


class LogReadElsewhere(IngestError):
    """Another import is reading the same log."""


class IdempotencyMismatch(IngestError):
    """The Idempotency-Key was used before for another body."""


class Overloaded(IngestError):
    """The service cannot process the request now: too many rows or passwords wait, a store is locked or does not
    answer, or the disk is full. The sender may retry after `retry_after_s`.

    Nothing was stored, unless the message has `ingest.hotlog.writer.MAY_BE_STORED`.
    """

    def __init__(self, reason: str, retry_after_s: int) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s
