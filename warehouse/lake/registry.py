"""The lake's record of the stores beside it: the hot logs that write into it, and the control database.

A Delta table has the last batch id of a hot log only for one who knows the hot log's id. This record lists the ids, so
that a missing hot log is noticed. It is one small JSON file for each store in a folder of the lake, and it is synced
before the first hit of a hot log is acknowledged.
"""

from pathlib import Path
from typing import TypeVar

import msgspec

from warehouse import disk
from warehouse.errors import DataIncomplete

FOLDER = "_stores"
_CONTROL = "control.json"

Record = TypeVar("Record", bound=msgspec.Struct)


class HotLogRecord(msgspec.Struct, frozen=True):
    """A hot log that writes into the lake, by its node id.

    `ledger_from_s` (seconds since 1970) is when its record of imported logs, which was lost before, began again; 0 for
    a complete one. A hot log that was given up may hold hits that nobody will see: it is refused.
    """

    node: str
    ledger_from_s: float = 0.0
    is_given_up: bool = False


class ControlRecord(msgspec.Struct, frozen=True):
    """The control database of the lake's projects, by its id."""

    database_id: str


def hot_logs(root: Path) -> dict[str, HotLogRecord]:
    """Return the hot logs that were ever registered, by node id."""
    records = (_read(file, HotLogRecord) for file in (root / FOLDER).glob("hot-*.json"))
    return {record.node: record for record in records}


def record_hot_log(root: Path, record: HotLogRecord) -> None:
    """Add or replace the record of a hot log; it is on the disk when this returns."""
    _write(root, f"hot-{record.node}.json", record)


def control(root: Path) -> ControlRecord | None:
    """Return the control database that the lake was last used with; None if none was recorded."""
    file = root / FOLDER / _CONTROL
    return _read(file, ControlRecord) if file.exists() else None


def record_control(root: Path, record: ControlRecord) -> None:
    """Add or replace the record of the control database; it is on the disk when this returns."""
    _write(root, _CONTROL, record)


def _read(file: Path, kind: type[Record]) -> Record:
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except msgspec.DecodeError as error:
        raise DataIncomplete(f"{file} is damaged ({error}): restore it from a backup of the lake") from None


def _write(root: Path, name: str, record: msgspec.Struct) -> None:
    disk.make_folder(root / FOLDER)
    disk.write(root / FOLDER / name, msgspec.json.encode(record))
