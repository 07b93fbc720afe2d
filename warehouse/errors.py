"""Errors of the warehouse. Their messages are for the user of the command or the API."""

from collections.abc import Sequence


class WarehouseError(Exception):
    """Base class of the warehouse's errors."""


class DataIncomplete(WarehouseError):
    """Part of the data folder is missing or older than the rest."""


class TableIncomplete(DataIncomplete):
    """A table of the lake lacks files or commits that it had. `fault` is the reason without the advice."""

    def __init__(self, table: str, fault: str, advice: str) -> None:
        super().__init__(f"the table {table} is incomplete: {fault}{advice}")
        self.table, self.fault = table, fault


class HotLogBehind(DataIncomplete):
    """The hot log is missing, new, or older than the lake."""


class DataMoved(WarehouseError):
    """The stores of a data folder were moved to another place."""


class MoveRefused(WarehouseError):
    """Stores cannot be moved: they are in use, or the new place is not empty. Nothing was moved."""


class StoreTooNew(WarehouseError):
    """A newer release wrote a store, whose schema version this release does not know."""


class BatchDamaged(WarehouseError):
    """The content of a waiting batch does not match its checksum, or a file that it names is missing."""


class AgentsDamaged(WarehouseError):
    """The file of the AI agents, which the program can write again, cannot be read."""


class RollupDamaged(WarehouseError):
    """A rollup cannot be read. Readers count from `hits` instead."""


class LakeUnreachable(WarehouseError):
    """The object store of the lake does not answer, or refuses a request."""


class InvalidRoot(WarehouseError):
    """The URI of a lake is malformed, or a package for object stores is not installed.

    The message continues a sentence that begins with the name of the setting.
    """


class UnsafeStore(WarehouseError):
    """An object store lets two writers create the same object."""


class ItemFailed(WarehouseError):
    """A worker failed at an item of batch work, with an error that cannot be sent to this process."""


class WorkerDied(WarehouseError):
    """Several workers died with the same item of batch work."""


class ClusterUnusable(WarehouseError):
    """Ray is not installed, its cluster does not answer, or a machine of the cluster cannot use the lake."""


class LakeBusy(WarehouseError):
    """Another process held the lake's lock for longer than the caller waits."""


class ProjectExists(WarehouseError):
    """A project has the id already."""


class ProjectNotFound(WarehouseError):
    """No project has the id, or the project is being deleted."""

    def __init__(self, id: str) -> None:
        super().__init__(f"there is no project {id!r}")
        self.id = id


class ProjectGone(WarehouseError):
    """The project of a deletion was deleted by another process. Another project may have its id since then."""

    def __init__(self, id: str) -> None:
        super().__init__(f"another process has deleted project {id!r}; a new project with this id is not changed")


class ControlUnreadable(WarehouseError):
    """The control database cannot be read."""


class InvalidProject(WarehouseError):
    """A project's id or one of its origins is malformed."""


class InvalidGoal(WarehouseError):
    """A new goal has an invalid or taken text, or its project has too many. `field` is the faulty one."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"the goal's {field} {reason}")
        self.field, self.reason = field, reason


class GoalNotFound(WarehouseError):
    """No goal of the project has this id or name."""


class NoData(WarehouseError):
    """A folder has no data of Readership."""


class InvalidSql(WarehouseError):
    """A query is not a single SELECT, or is not valid SQL of DuckDB."""


class TooManyBuckets(WarehouseError):
    """A series has more buckets than the limit."""

    def __init__(self, interval: str, limit: int) -> None:
        super().__init__(
            f"the range has more than {limit:,} buckets of one {interval}, the limit of a series: "
            "choose a longer interval or a shorter range"
        )


class TooManyViews(WarehouseError):
    """Values of visitors are in no rollup, and the range has too many views to read them one by one."""

    def __init__(self, views: int, limit: int, dimensions: Sequence[str]) -> None:
        super().__init__(
            f"the range has {views:,} views of the project, and the limit for a report by"
            f" {' and '.join(dimensions)} is {limit:,}: choose a shorter range, or leave one of them out"
        )


class InvalidMoment(WarehouseError):
    """The text of a moment is malformed, or the moment has not been reached yet."""


class MomentExpired(WarehouseError):
    """Rows of a moment can no longer be read."""


class StagedTooLong(WarehouseError):
    """Staged files are so old that a vacuum may have deleted them before a batch named them."""


class SlowReport(WarehouseError):
    """The report takes long, and its caller accepts only a fast one."""


class SpillFull(WarehouseError):
    """Slow reports and the exports that clients have not read take as much disk space as they may."""

    def __init__(self, limit: str) -> None:
        super().__init__(
            f"reports of large projects, and their exports that are still open, take {limit} of disk space, which is"
            " the limit: choose a shorter range, or close other exports and repeat the request"
        )


def is_unreachable(error: BaseException) -> bool:
    """Return whether an object store that does not answer caused an error.

    An error of DuckDB has the text of its cause, and not the cause.
    """
    return isinstance(error, LakeUnreachable) or f"{LakeUnreachable.__name__}: " in str(error)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether a query needed more memory than its database may use, beside those of other requests."""
    return type(error).__name__ == "OutOfMemoryException"  # by its name: see `engine_errors`


def engine_errors() -> tuple[type[Exception], ...]:
    """Return the error classes of DuckDB and Delta for a failed file, memory or disk, but not those for wrong SQL.

    Imports both libraries. Python evaluates an `except` clause only if no earlier one matches: name this one last.
    """
    import duckdb  # noqa: PLC0415  # importing both takes 0.1 s, and most users of this module need neither
    from deltalake.exceptions import DeltaError  # noqa: PLC0415  # the same

    # DuckDB raises InvalidInputException for a truncated Parquet file.
    return DeltaError, duckdb.OperationalError, duckdb.InvalidInputException
