"""Names of the files in a data folder, and the record of a move of its stores. Imports no database library."""

from pathlib import Path
from urllib.parse import quote

import msgspec

from warehouse import disk
from warehouse.errors import DataIncomplete, DataMoved

HOT_LOG, LAKE, RUN, JOBS, CONTROL, RANGES = "hot.sqlite", "lake", "run", "jobs", "control.sqlite", "ranges"
SALTS = "salts.sqlite"
"""Name of the file with the salts of visitors, which no backup may have."""
MOVED = "moved.json"
"""Name of the file with the `Moved` of a data folder whose stores were moved."""
_BACK = "to go back, see docs/nodes.md"


class Moved(msgspec.Struct, frozen=True):
    """Record of a move: the names of the new places, without a password.

    `database` is None if the hot log and the control database are in the data folder, and `lake` if the lake is. `node`
    is the id of the hot log. While `is_complete` is false, the move was interrupted in its last step, and the new
    database may have the stores.
    """

    node: str
    database: str | None
    lake: str | None
    is_complete: bool = False

    @property
    def places(self) -> str:
        return " and ".join(place for place in (self.database, self.lake) if place is not None)


def sqlite_url(path: Path) -> str:
    return f"sqlite:///{quote(str(path))}"


def read_moved(data: Path) -> Moved | None:
    """Return the record of a data folder; None if its stores were not moved. Raises DataIncomplete if it is damaged."""
    file = data / MOVED
    try:
        return msgspec.json.decode(file.read_bytes(), type=Moved)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except msgspec.DecodeError as error:
        raise DataIncomplete(f"{file} is damaged ({error}), and records where the data were moved") from None


def record_moved(data: Path, moved: Moved) -> None:
    """Write the record of a move, and sync it."""
    disk.write(data / MOVED, msgspec.json.encode(moved))


def refuse_moved(data: Path, *, has_database: bool, has_lake: bool) -> None:
    """Raise DataMoved if a store of a data folder was moved that the caller would use in the folder.

    `has_database` and `has_lake`: the caller uses a database on a server, or a lake in an object store.
    """
    moved = read_moved(data)
    if moved is None:
        return
    if not moved.is_complete:
        raise DataMoved(
            f"the move of {data} to {moved.places} is not complete: run readership move again with the same places; "
            f"{_BACK}"
        )
    names = (("READERSHIP_DATABASE_URL", moved.database, has_database), ("READERSHIP_LAKE", moved.lake, has_lake))
    if missing := [f"{name} to {place}" for name, place, is_set in names if place is not None and not is_set]:
        raise DataMoved(f"the data of {data} were moved to {moved.places}: set {' and '.join(missing)}; {_BACK}")
