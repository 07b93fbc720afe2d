"""Generate a lake of any size: `python -m benchmarks lake FOLDER --hits 100000000 --days 365 --paths 10000`.

The Parquet files of `hits` are written as a compaction writes them, one a day, and added in one commit. No hit passes
through the hot log. `readership rebuild` then writes all that is derived from `hits`.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from api import data_folder, settings
from benchmarks.data import traffic
from benchmarks.data.traffic import Traffic
from warehouse.control import database, projects
from warehouse.hotlog import batches
from warehouse.integrity.durability import durable_writes
from warehouse.lake import delta_table, row_groups, staging
from warehouse.lake.delta_table import File
from warehouse.lake.roots import Root
from warehouse.schema import HOT
from warehouse.tables import ASSET_LOADS_TABLE, HITS_TABLE, Spec

COMMAND = str(Path(sys.executable).parent / "readership")
SHAPE = "lake.json"
"""Name of the file with the shape of a lake, beside its data folder."""
SEED = 13
THREADS = 2
LOCK_WAIT_S = 60.0
"""Timeout for the lock of the lake, in seconds."""
_TIMES = ("ts", "received_at")


class Shape(msgspec.Struct, frozen=True):
    """Parameters of a lake. `end` is the day after the last."""

    hits: int
    days: int
    paths: int
    projects: int
    end: date


@dataclass(frozen=True, slots=True)
class Lake:
    """A generated lake: its folder, which has the data folder, and its shape."""

    folder: Path
    shape: Shape

    @property
    def data(self) -> Path:
        return self.folder / "data"


def main(*arguments: str) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks lake", description="Generate a lake.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--hits", type=int, default=10_000_000)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--paths", type=int, default=10_000, help="paths of the large project")
    parser.add_argument("--projects", type=int, default=8)
    parser.add_argument("--end", type=date.fromisoformat, default=datetime.now(UTC).date(), help="day after the last")
    parsed = parser.parse_args(arguments)
    shape = Shape(parsed.hits, parsed.days, parsed.paths, parsed.projects, parsed.end)
    began = time.perf_counter()
    lake = generate(parsed.folder, shape)
    seconds = time.perf_counter() - began
    mib = sum(path.stat().st_size for path in (lake.data / "lake" / "hits").rglob("*.parquet")) / 1024**2
    print(f"{shape.hits:,} hits in {seconds:.1f} s: {shape.hits / seconds:,.0f} hits/s, {mib:,.0f} MiB of hits")
    derive(lake)
    print(f"derived tables written, {time.perf_counter() - began:.1f} s in all")


def generate(folder: Path, shape: Shape) -> Lake:
    """Write and commit the hits of a lake in a new folder. `derive` writes the rest."""
    folder.mkdir(parents=True)
    lake = Lake(folder, shape)
    config = settings.read({}, lake.data)
    data_folder.prepare(config)
    drawn = traffic.create(shape.projects, shape.paths)
    _create_projects(config, drawn.pages.projects.to_pylist())
    days = traffic.hits_by_day(shape.hits, shape.days, shape.end)
    with ThreadPoolExecutor(THREADS, "generate") as pool:
        written = list(pool.map(partial(_write_day, config.lake, drawn), days, days.values()))
    with closing(batches.connect(config.hot_log)) as hot, durable_writes(hot, config.lake, LOCK_WAIT_S):
        node = batches.node_id(hot)
        for spec in (HITS_TABLE, ASSET_LOADS_TABLE):
            table = delta_table.open_table(config.lake, spec)
            files = [file for of_day in written for file in of_day[spec]]
            delta_table.add_files(table, spec, files, node, delta_table.offset(table, node))
    (folder / SHAPE).write_bytes(msgspec.json.encode(shape))
    return lake


def derive(lake: Lake) -> None:
    """Write what is derived from `hits`, by the command that an operator would use."""
    subprocess.run([COMMAND, "--data", str(lake.data), "rebuild"], check=True)


def opened(folder: Path) -> Lake:
    """Return a lake that was generated before."""
    return Lake(folder, msgspec.json.decode((folder / SHAPE).read_bytes(), type=Shape))


def clone(lake: Lake, folder: Path) -> Lake:
    """Copy a lake to a folder of the same file system, so that a benchmark does not change the original.

    Parquet files are never changed, and are linked instead of copied.
    """
    shutil.copytree(lake.data, folder / "data", copy_function=_link_or_copy)
    return Lake(folder, lake.shape)


def _link_or_copy(source: str, target: str) -> str:
    if Path(source).suffix == ".parquet":
        os.link(source, target)
        return target
    return str(shutil.copy2(source, target))


def _create_projects(config: settings.Settings, names: Sequence[str]) -> None:
    engine = database.connect(config.database_url)
    for name in names:
        projects.create(engine, name, (), int(time.time()))
    engine.close()


def _write_day(root: Root, drawn: Traffic, day: date, hits: int) -> dict[Spec, Sequence[File]]:
    """Write the hits and the loads of assets of a day.

    A day has its own seed, so that the rows do not depend on the number of threads.
    """
    rows = traffic.day_rows(drawn, np.random.default_rng((SEED, day.toordinal())), day, hits)
    file = root.local / HITS_TABLE.name / f"{HITS_TABLE.partition}={day}" / f"part-{uuid.uuid4()}.parquet"
    file.parent.mkdir()
    pq.write_table(
        _columns(rows),
        file,
        compression="zstd",
        compression_level=3,
        row_group_size=row_groups.ROWS_MAX,
        write_batch_size=row_groups.ROWS_MAX,
        use_dictionary=[name for name in HOT.names if name not in {*_TIMES, "status"}],
        column_encoding=dict.fromkeys(_TIMES, "DELTA_BINARY_PACKED"),
        store_schema=False,  # or readers would get dictionaries in place of texts
    )
    loads = staging.write(root, ASSET_LOADS_TABLE, traffic.asset_loads(rows, day))
    return {HITS_TABLE: [File(str(file), day.isoformat(), file.stat().st_size, hits)], ASSET_LOADS_TABLE: loads}


def _columns(rows: pa.Table) -> pa.Table:
    """Return the columns of a file, with their nullability."""
    arrays = [rows[name].combine_chunks() for name in HOT.names]
    fields = [pa.field(field.name, array.type, field.nullable) for field, array in zip(HOT, arrays, strict=True)]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))
