"""Downloads in a log, as rows of `events`: files that people and AI fetched."""

import json
from collections.abc import Collection, Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from ingest.formats.page_filter import is_download
from ingest.hits.event import DOWNLOAD
from ingest.imports.dictionary import compact, map_values
from ingest.visitors.visitor import DAY_US
from warehouse.lake.staging import Staged
from warehouse.tables import EVENTS_TABLE, Spec

WHOLE, PART = 200, 206
Rows = Mapping[Spec, pa.Table] | Staged
Key = tuple[int | None, int, str]
"""Visitor, day in days since 1970 and path of a download."""


def with_slash(files: pa.Table) -> pa.Table:
    """Return hits of files that are no pages, which `page_filter` marks by a path without slash, with their paths."""
    path = compact(files["path"])
    paths = pc.binary_join_element_wise("/", path.dictionary, "")
    return files.set_column(0, files.schema.field(0), pa.DictionaryArray.from_arrays(path.indices, paths))


def events(hits: pa.Table) -> pa.Table:
    """Return the downloads of people and AI among rows of `hits`, each once for a visitor, day and file.

    Viewers and players load a file in parts, and a log does not name the bytes of a part. A part is therefore no
    download if the visitor is unknown.
    """
    path = compact(hits["path"])
    files = hits.filter(map_values(path, is_download, pa.bool_()))
    is_known = pc.and_(pc.equal(files["status"], PART), files["visitor"].is_valid())
    is_loaded = pc.or_(pc.equal(files["status"], WHOLE), is_known)
    is_read = pc.is_in(files["traffic"].cast(pa.string()), pa.array(["human", "ai"]))
    files = files.filter(pc.and_(is_loaded, is_read))
    path = compact(files["path"])
    props = [json.dumps({"url": each}, ensure_ascii=False) for each in path.dictionary.to_pylist()]
    columns = {
        **{name: files[name] for name in files.column_names},
        "name": pa.array([DOWNLOAD] * len(files), pa.string()),
        "interactive": pa.array([True] * len(files), pa.bool_()),
        "props": pa.array(props, pa.string()).take(path.indices),
    }
    table = pa.table([columns[each.name].cast(each.type) for each in EVENTS_TABLE.hot], schema=EVENTS_TABLE.hot)
    return _new(table, ())


def new(rows: Mapping[Spec, pa.Table], counted: Collection[Key]) -> Mapping[Spec, pa.Table]:
    """Return the rows of a small chunk without counted downloads: parts of a file arrive in chunks of a growing log."""
    return {**rows, EVENTS_TABLE: _new(rows[EVENTS_TABLE], counted)}


def keys(rows: Rows) -> Iterable[Key]:
    """Return the downloads of a small chunk, to be counted when the chunk is stored."""
    return () if isinstance(rows, Staged) else _keys(rows[EVENTS_TABLE])


def _new(downloads: pa.Table, counted: Collection[Key]) -> pa.Table:
    """Return the first download of each key that is not counted yet, and all downloads of unknown visitors."""
    seen, is_new = set[Key](), []
    for key in _keys(downloads):
        is_new.append(key[0] is None or not (key in seen or key in counted))
        seen.add(key)
    return downloads.filter(pa.array(is_new, pa.bool_()))


def _keys(downloads: pa.Table) -> Iterable[Key]:
    days = downloads["ts"].cast(pa.int64()).to_numpy() // DAY_US
    return zip(downloads["visitor"].to_pylist(), days.tolist(), downloads["path"].to_pylist(), strict=True)
