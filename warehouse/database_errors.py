"""Causes of database errors of SQLite and PostgreSQL, which of them are temporary, and outages of the stores."""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

from warehouse.database.pool import PoolError
from warehouse.database.postgresql import ServerError
from warehouse.errors import is_unreachable

_SQLITE_PRIMARY = 0xFF
"""Mask of the primary code in an extended one (https://sqlite.org/rescode.html)."""
_SQLITE_FULL = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE})
"""Codes of a full disk. SQLITE_IOERR_SHMSIZE means that the file of the WAL index cannot grow."""
_SQLITE_LOCKED = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_SQLITE_UNUSABLE = frozenset(
    {
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_AUTH,
        sqlite3.SQLITE_NOTADB,
    }
)
# Prefixes of https://www.postgresql.org/docs/current/errcodes-appendix.html
_POSTGRESQL_FULL = ("53100",)
_POSTGRESQL_UNAVAILABLE = (
    "08",  # connection exception
    "25P03",  # idle_in_transaction_session_timeout
    "25P04",  # transaction_timeout
    "40001",  # serialization_failure
    "40P01",  # deadlock_detected
    "53300",  # too_many_connections
    "55P03",  # lock_not_available
    "57014",  # query_canceled, by statement_timeout
    "57P01",  # admin_shutdown
    "57P02",  # crash_shutdown
    "57P03",  # cannot_connect_now
    "57P05",  # idle_session_timeout
)
_POSTGRESQL_UNUSABLE = (
    "25006",  # read_only_sql_transaction
    "28",  # invalid authorization
    "3D000",  # no such database
    "42501",  # insufficient_privilege
    "58",  # system error, such as of input and output
    "XX001",  # data_corrupted
    "XX002",  # index_corrupted
)


LOG = logging.getLogger("readership.control")


class Cause(Enum):
    """Cause of a database error."""

    UNAVAILABLE = "unavailable"
    """A lost connection or a lock timeout."""
    DISK_FULL = "disk full"
    DISK_FAILED = "disk failed"
    """The disk cannot be read or written."""
    UNUSABLE = "unusable"
    """The database is damaged, read-only or cannot be opened."""
    PROGRAM = "program"
    """An error of this program, such as a column that does not exist, or an error that is not a database's."""


_STATUS = {
    Cause.UNAVAILABLE: "does not answer",
    Cause.DISK_FULL: "disk full",
    Cause.DISK_FAILED: "its disk cannot be read or written: see the log",
    Cause.UNUSABLE: "damaged, read-only or not accessible: see the log",
    Cause.PROGRAM: "does not fit this version of the program: see the log",
}


def cause_of(error: BaseException) -> Cause:
    """Return the cause of an error of SQLite, a PostgreSQL server, a pool or any other library."""
    match error:
        case PoolError(orig=orig):
            return cause_of(orig)
        case sqlite3.Error():
            return _of_sqlite(error)
        case ServerError(is_lost=True) | ServerError(sqlstate=None):
            return Cause.UNAVAILABLE
        case ServerError(sqlstate=str(state)):
            return _of_sqlstate(state)
    return Cause.PROGRAM


def is_temporary(error: BaseException) -> bool:
    """Return whether a retry may succeed without a change of the program or the database.

    A full disk is temporary: nothing was stored, and space may become free.
    """
    return cause_of(error) in {Cause.UNAVAILABLE, Cause.DISK_FULL}


def outage_of(error: BaseException) -> str | None:
    """Return which store does not answer, for a log that reports each outage once; None for another error.

    The messages of the errors of one outage differ, and their tracebacks name no fault of this program.
    """
    if is_unreachable(error):
        return "the object store of the lake does not answer"
    return "the database does not answer" if cause_of(error) is Cause.UNAVAILABLE else None


def is_damage(error: BaseException) -> bool:
    """Return whether SQLite found that a file is damaged or is not a database, or Python that a text is no UTF-8."""
    code = getattr(getattr(error, "orig", None) or error, "sqlite_errorcode", None)
    if code is None:  # an error of Python's module, which has no code of its own for it
        return isinstance(error, sqlite3.Error) and "decode to UTF-8" in str(error)
    return code & _SQLITE_PRIMARY in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def reason_of(error: BaseException) -> str:
    """Return the message of a database in one line."""
    return " ".join(str(getattr(error, "orig", None) or error).split())


def status_of(error: BaseException) -> str:
    """Return the cause and code of an error for `/readyz`, without hosts, paths or values."""
    orig = getattr(error, "orig", None) or error
    code = getattr(orig, "sqlite_errorname", None) or getattr(orig, "sqlstate", None) or type(error).__name__
    return f"{_STATUS[cause_of(error)]} ({code})"


@contextmanager
def best_effort(fault: str) -> Iterator[None]:
    """Run the block. If the control database is read-only, full or locked, log the fault and go on."""
    try:
        yield
    except PoolError as error:
        if cause_of(error) is Cause.PROGRAM:
            raise
        LOG.warning("%s: %s", fault, reason_of(error))


def _of_sqlite(error: sqlite3.Error) -> Cause:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    primary = code & _SQLITE_PRIMARY
    if code in _SQLITE_FULL:
        return Cause.DISK_FULL
    if primary in _SQLITE_LOCKED:
        return Cause.UNAVAILABLE
    if primary == sqlite3.SQLITE_IOERR:
        return Cause.DISK_FAILED
    return Cause.UNUSABLE if primary in _SQLITE_UNUSABLE else Cause.PROGRAM


def _of_sqlstate(state: str) -> Cause:
    if state.startswith(_POSTGRESQL_FULL):
        return Cause.DISK_FULL
    if state.startswith(_POSTGRESQL_UNAVAILABLE):
        return Cause.UNAVAILABLE
    return Cause.UNUSABLE if state.startswith(_POSTGRESQL_UNUSABLE) else Cause.PROGRAM
