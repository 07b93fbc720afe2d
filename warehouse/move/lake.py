"""The files of a local lake, copied to an object store.

An interrupted copy is unusable, and never a lake with fewer rows, because of the order of its files. The registry of
the stores comes first: a node with a new hot log is refused beside it. The logs of the tables come last, newest commit
first: a log without its first commits and without a checkpoint cannot be opened. A copy that is repeated begins by
deleting the logs, and does not send files again that cannot have changed.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import msgspec

from warehouse.errors import MoveRefused
from warehouse.lake import delta_log, delta_table, registry
from warehouse.lake.remote.file_cache import FOLDER
from warehouse.lake.remote.object_path import PROBES, ObjectPath
from warehouse.lake.roots import Root
from warehouse.rollups import catalog
from warehouse.tables import TABLES, Spec

MARK = "_move.json"
"""Object of the new lake while it is incomplete, with the id of the hot log beside the source."""
UPLOADS = 4
"""Number of files that are uploaded at a time. A large file is sent in up to 12 parts of 5 MiB at a time."""
LOCAL = frozenset((FOLDER, PROBES))
"""Folders of the lake's local folder that are not part of the lake."""
_UNKNOWN = (3, 0)
OnBytes = Callable[[int], None]
"""Function that is called with the number of bytes that are copied since its last call."""
OnPoint = Callable[[str], None]
"""Function that is called with the name of each point (see POINTS) at which a crash leaves a different state."""
POINTS = ("before stores", "before files", "after file", "before logs", "after log file", "before check")


def list_files(lake: Root) -> dict[str, int]:
    """Return the files that are copied: sizes in bytes by path in the lake. Locks and other hidden files are not."""
    return {
        key: stat.st_size
        for key, stat in lake.files()
        if key.partition("/")[0] not in LOCAL
        and not key.rpartition("/")[2].startswith(".")
        and (not _is_log(key) or _order(key) != _UNKNOWN)
    }


def copy(
    lake: Root,
    target: ObjectPath,
    node: str,
    on_bytes: OnBytes = lambda count: None,
    on_point: OnPoint = lambda point: None,
) -> dict[str, int]:
    """Copy a lake that nothing changes meanwhile, and return its files: see `list_files`.

    `node` is the id of its hot log. Call `finish` when the copy is in use.

    Raises:
        MoveRefused: the new place is not empty, or has newer tables, or differs from the lake after the copy.
        LakeUnreachable: the store does not answer.
    """
    existing = _begin(lake, target, node)
    files = list_files(lake)
    logs = sorted(filter(_is_log, files), key=_order)
    stores = [key for key in files if key.startswith(f"{registry.FOLDER}/")]
    rollups = [key for key in files if key.endswith(f"/{catalog.COVERAGE}")]
    others = files.keys() - {*logs, *stores, *rollups}
    missing = [key for key in sorted(others) if existing.get(key) != files[key] or not _is_immutable(key)]

    def upload(key: str) -> None:
        (target / key).write((lake / key).local)
        on_bytes(files[key])

    on_point("before stores")
    for key in stores:
        upload(key)
    on_point("before files")
    on_bytes(sum(files[key] for key in others.difference(missing)))
    for phase in (missing, rollups):
        _upload_all(upload, phase, on_point)
    on_point("before logs")
    for key in logs:
        upload(key)
        on_point("after log file")
    for key in existing.keys() - files.keys():
        (target / key).unlink(missing_ok=True)
    on_point("before check")
    _require_equal(lake, target, node, files)
    return files


def finish(target: ObjectPath) -> None:
    """Delete the mark of a lake that is complete and in use."""
    (target / MARK).unlink(missing_ok=True)


def _begin(lake: Root, target: ObjectPath, node: str) -> dict[str, int]:
    """Mark the new lake as incomplete, delete the logs of its tables, and return its files."""
    existing = {key: stat.st_size for key, stat in target.files() if not key.startswith(f"{PROBES}/")}
    mark = msgspec.json.encode({"node": node})
    if existing.pop(MARK, None) is None:
        if existing:
            raise MoveRefused(f"{target} is not empty: name another prefix, or delete its {len(existing):,} objects")
        if not (target / MARK).write_new(mark):
            raise MoveRefused(f"another move to {target} has just begun: name another prefix")
    elif (target / MARK).read_bytes() != mark:
        raise MoveRefused(f"{target} has the interrupted move of another data folder: name another prefix")
    for spec in TABLES:
        if delta_log.read(target / spec.name).newest > delta_log.read(lake / spec.name).newest:
            raise MoveRefused(f"{target / spec.name} is newer than the table in {lake}: it was used after its copy")
    logs = [key for key in existing if _is_log(key)]
    for key in sorted(logs, key=_order, reverse=True):
        (target / key).unlink(missing_ok=True)
    return {key: size for key, size in existing.items() if not _is_log(key)}


def _upload_all(upload: Callable[[str], None], keys: Iterable[str], on_point: OnPoint) -> None:
    """Upload files, several at a time. After an error, no further upload begins."""
    with ThreadPoolExecutor(UPLOADS, "upload") as pool:
        try:
            for _ in pool.map(upload, keys):
                on_point("after file")
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _is_log(key: str) -> bool:
    return f"/{delta_log.FOLDER}/" in key


def _is_immutable(key: str) -> bool:
    """Return whether the name of a file is unique, so that a file of the same size has the same content."""
    return key.endswith(".parquet") and "/" in key


def _order(key: str) -> tuple[int, int]:
    """Return the position of a file in the upload of logs; _UNKNOWN for a file that is not part of a log.

    Commits come first, the newest before the others, then checkpoints, then the file that names the newest one.
    """
    name = key.rpartition("/")[2]
    if name == delta_log.HINT:
        return 2, 0
    commit, checkpoint = delta_log.version_of(name)
    if commit is not None:
        return 0, -commit
    return _UNKNOWN if checkpoint is None else (1, checkpoint)


def _require_equal(lake: Root, target: ObjectPath, node: str, files: dict[str, int]) -> None:
    """Raise MoveRefused unless the new lake has the same files and tables."""
    copied = {key: stat.st_size for key, stat in target.files() if key != MARK}
    differing = sorted(key for key in files.keys() | copied.keys() if files.get(key) != copied.get(key))
    if differing:
        raise MoveRefused(f"{len(differing):,} copies differ from their source, the first: {target / differing[0]}")
    for spec in TABLES:
        if delta_table.is_table(lake / spec.name) and _state(lake, spec, node) != _state(target, spec, node):
            raise MoveRefused(f"the table {target / spec.name} differs from its source")


def _state(lake: Root, spec: Spec, node: str) -> tuple[object, ...]:
    """Return the version of a table, its offset and its files, without the root of the lake."""
    state = delta_table.state(delta_table.open_table(lake, spec), spec, node)
    files = {(file.path.removeprefix(str(lake)), file.partition, file.size, file.rows) for file in state.files}
    return state.version, state.offset, files
