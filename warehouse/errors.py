"""What can go wrong in the warehouse. Messages are for the person who called."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import exc


class WarehouseError(Exception):
    """Base of the warehouse's errors."""


class DataIncomplete(WarehouseError):
    """Part of the data folder is missing or older than the rest."""


class TableIncomplete(DataIncomplete):
    """A table of the lake lacks part of what it had. `fault` is the reason, without the table's name and advice."""

    def __init__(self, table: Path, fault: str, advice: str) -> None:
        super().__init__(f"the table {table} is incomplete: {fault}{advice}")
        self.table, self.fault = table, fault


class HotLogBehind(DataIncomplete):
    """The hot log is missing, new, or older than the lake, which has batches that it never made."""


class StoreTooNew(WarehouseError):
    """A store was written by a newer release, and this one does not know its schema version."""


class BatchDamaged(WarehouseError):
    """The content of a waiting batch is not what was stored."""


class LakeBusy(WarehouseError):
    """Another process kept the lake's lock for longer than the caller would wait."""


class ProjectExists(WarehouseError):
    """A project of that id is there already."""


class ProjectNotFound(WarehouseError):
    """No project has that id, or it is being deleted."""

    def __init__(self, id: str) -> None:
        super().__init__(f"there is no project {id!r}")


class ControlUnreadable(WarehouseError):
    """The control database cannot be asked."""


class InvalidProject(WarehouseError):
    """A project's id or one of its origins is not of the form asked for."""


class NoData(WarehouseError):
    """A folder holds no data of Readership."""


class InvalidSql(WarehouseError):
    """A question is not one SELECT, or not DuckDB's SQL."""


class StagedTooLong(WarehouseError):
    """Files that were staged long ago are named only now, and may be gone."""


def control_errors() -> "tuple[type[exc.DBAPIError], type[exc.TimeoutError]]":
    """Return the errors of the control database. Loads SQLAlchemy: see `engine_errors`."""
    from sqlalchemy import exc  # noqa: PLC0415 - the same

    return exc.DBAPIError, exc.TimeoutError


def engine_errors() -> tuple[type[Exception], ...]:
    """Those by which DuckDB and Delta say that a file, the memory or the disk failed them, and not our SQL.

    Loads both: name it in the last `except`, which only an error that nobody else knows comes to.
    """
    import duckdb  # noqa: PLC0415 - this module is imported by those that need neither, and they take 0.3 s
    from deltalake.exceptions import DeltaError  # noqa: PLC0415 - the same

    return DeltaError, duckdb.OperationalError, duckdb.InvalidInputException  # the last of a file that is cut short
