"""Registry, in the lake, of the stores beside it: the hot logs that write into the lake, and the control database.

A Delta table records the last batch id of each hot log under the hot log's id, but cannot list these ids. The registry
lists them, so that a missing hot log is detected. It is a folder of the lake with one small JSON file for each store,
and a hot log is registered and synced before its first hit is acknowledged.
"""

from fnmatch import fnmatch
from typing import TypeVar

import msgspec

from warehouse.errors import DataIncomplete
from warehouse.lake.roots import Root

FOLDER = "_stores"
_CONTROL = "control.json"

Record = TypeVar("Record", bound=msgspec.Struct)


class HotLogRecord(msgspec.Struct, frozen=True):
    """A hot log that writes into the lake, by its node id.

    `ledger_from_s` is the time (seconds since 1970) since which its record of imported logs is complete; 0 if that
    record was never lost. `is_given_up` marks a hot log whose loss was accepted: it is refused, because hits in it may
    never be loaded.
    """

    node: str
    ledger_from_s: float = 0.0
    is_given_up: bool = False


class ControlRecord(msgspec.Struct, frozen=True):
    """Control database of the lake's projects, by its id."""

    database_id: str


def hot_logs(root: Root) -> dict[str, HotLogRecord]:
    """Return all hot logs that were ever registered, by node id."""
    folder = root / FOLDER
    records = (_read(folder / name, HotLogRecord) for name, _ in folder.files() if fnmatch(name, "hot-*.json"))
    return {record.node: record for record in records}


def record_hot_log(root: Root, record: HotLogRecord) -> None:
    """Add or replace the record of a hot log, and sync it."""
    _write(root, f"hot-{record.node}.json", record)


def control(root: Root) -> ControlRecord | None:
    """Return the control database that the lake was last used with; None before the first record."""
    file = root / FOLDER / _CONTROL
    return _read(file, ControlRecord) if file.exists() else None


def record_control(root: Root, record: ControlRecord) -> None:
    """Add or replace the record of the control database, and sync it."""
    _write(root, _CONTROL, record)


def _read(file: Root, kind: type[Record]) -> Record:
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except msgspec.DecodeError as error:
        raise DataIncomplete(f"{file} is damaged ({error}): restore it from a backup of the lake") from None


def _write(root: Root, name: str, record: msgspec.Struct) -> None:
    (root / FOLDER).make_folder()
    (root / FOLDER / name).write(msgspec.json.encode(record))
