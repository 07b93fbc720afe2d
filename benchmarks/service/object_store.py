"""Reports over a lake in an object store, against the same lake in a local folder, on one machine.

`python -m benchmarks.service.object_store FOLDER` copies a lake of `python -m benchmarks lake` to the S3 server of
moto, which is bound to loopback and keeps its objects in memory. The results of the two lakes alternate.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random

import duckdb
import httpx

from api import settings
from benchmarks import export, lake
from benchmarks.export import Figures
from benchmarks.lake import Lake
from benchmarks.measure import RUNS, end_within, record
from benchmarks.service import server
from benchmarks.service.reader import Reader, datetimes, whole_days
from benchmarks.service.server import Server
from warehouse.lake import delta_table, roots
from warehouse.lake.delta_table import File
from warehouse.lake.remote import file_cache
from warehouse.lake.remote.object_path import ObjectPath
from warehouse.query import engine
from warehouse.tables import HITS_TABLE

URI = "s3://readership-bench/lake"
LIMIT_S = 3_600
"""Time limit of the benchmark, in seconds."""
REQUESTS = 15
READY_S = 60
LOCAL = (".lock", ".clock", ".tidied", file_cache.FOLDER)
"""Names in the folder of a lake that belong to the machine."""
FILES = 31
"""Number of files of `hits` that a single count reads."""
_COUNT = """
SELECT path, count(*) FILTER (traffic = 'human') AS human, count(*) FILTER (traffic = 'ai') AS ai, count(*) AS views
FROM {rows} WHERE project_id = 'bench' GROUP BY path ORDER BY views DESC, path
"""


def main(*folders: str) -> None:
    if len(folders) != 1:
        raise SystemExit(__doc__)
    end_within(LIMIT_S)
    original, figures = lake.opened(Path(folders[0])), Figures()
    with tempfile.TemporaryDirectory(dir=original.folder, prefix="copy-") as scratch, _s3() as variables:
        local = lake.clone(original, Path(scratch) / "local")
        server.create_key(local.data)  # writes what an older release did not
        remote = _upload(local, Path(scratch) / "remote")
        _measure_cold(figures, local, remote, variables)
        _measure_warm(figures, local, remote, variables)
        _measure_reads(figures, roots.LocalPath(local.data / "lake"), settings.read(variables, remote.data).lake)
    record("object-store", figures.measured())


@contextmanager
def _s3() -> Iterator[dict[str, str]]:
    """Start an S3 server with a bucket, and yield the settings with which a service uses it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    os.environ |= {
        "AWS_ENDPOINT_URL": url,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "benchmark",
        "AWS_SECRET_ACCESS_KEY": "benchmark",
    }
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        httpx.Client(transport=httpx.HTTPTransport(retries=10), timeout=READY_S).put(f"{url}/readership-bench")
        yield {"READERSHIP_LAKE": URI}
    finally:
        process.terminate()
        process.wait()


def _upload(local: Lake, folder: Path) -> Lake:
    """Copy a lake to the object store, and its databases to a new data folder."""
    root = settings.read({"READERSHIP_LAKE": URI}, folder / "data").lake
    assert isinstance(root, ObjectPath)
    source = local.data / "lake"
    shutil.copytree(local.data, folder / "data", ignore=shutil.ignore_patterns("lake"))
    for file in sorted(source.rglob("*")):
        place = file.relative_to(source)
        if file.is_file() and place.parts[0] not in LOCAL:
            (root / place.as_posix()).write(file)
    return replace(local, folder=folder)


def _measure_cold(figures: Figures, local: Lake, remote: Lake, variables: dict[str, str]) -> None:
    """Measure the first page of new processes: with a local lake, and with an empty and a full cache of objects."""
    ranges = export.draw_ranges(local.shape, Random(1))
    for _ in range(RUNS):
        page = whole_days(next(ranges.closed))
        shutil.rmtree(remote.data / "lake" / file_cache.FOLDER, ignore_errors=True)
        for name, data, used in (
            ("local", local.data, {}),
            ("object store, empty cache", remote.data, variables),
            ("object store, full cache", remote.data, variables),
        ):
            with server.running(data, variables=used) as running, closing(Reader(running)) as reader:
                _add(figures, f"first page, cold process: {name}", running, partial(reader.get, "views", **page))


def _measure_warm(figures: Figures, local: Lake, remote: Lake, variables: dict[str, str]) -> None:
    """Measure processes that have read each month, with a full cache of objects."""
    ranges = export.draw_ranges(local.shape, Random(2))
    with ExitStack() as stack:
        one = stack.enter_context(server.running(local.data))
        other = stack.enter_context(server.running(remote.data, variables=variables))
        readers = [stack.enter_context(closing(Reader(each))) for each in (one, other)]
        for run in range(RUNS + 1):
            pages = list(islice(ranges.closed, 2 * REQUESTS))
            for name, running, reader in zip(("local", "object store"), (one, other), readers, strict=True):
                into = figures if run else Figures()
                new, edges = pages[:REQUESTS], pages[REQUESTS:]
                for title, queries in (
                    ("first page, new range", [whole_days(each) for each in new]),
                    ("first page, new range of datetimes", [datetimes(each) for each in edges]),
                    ("first page again", [whole_days(new[-1])] * REQUESTS),
                ):
                    into.add(f"{title}: {name}", reader.median_ms("views", queries))
                series = {"interval": "day", **whole_days(new[0])}
                _add(into, f"series by day: {name}", running, partial(reader.get, "series", **series))


def _measure_reads(figures: Figures, local: roots.Root, remote: roots.Root) -> None:
    """Measure one count of FILES files of `hits` by DuckDB and by Polars, from the local lake and the object store."""
    import polars as pl  # noqa: PLC0415  # the service does not use it

    uris = sorted(delta_table.open_table(local, HITS_TABLE).file_uris())[:FILES]
    names = [each.rpartition("/hits/")[2] for each in uris]
    on_disk = [str(local / "hits" / name) for name in names]
    objects = [str(remote / "hits" / name) for name in names]
    database = duckdb.connect()
    roots.register(database)
    options = {name.lower(): value for name, value in os.environ.items() if name.startswith("AWS_")}

    def by_duckdb(paths: list[str]) -> list[tuple[object, ...]]:
        files = [File(path, Path(path).parent.name.partition("=")[2], 0, 0) for path in paths]
        return database.cursor().sql(_COUNT.format(rows=engine.parquet(files))).fetchall()

    def by_polars(paths: list[str], storage_options: dict[str, str] | None = None) -> list[tuple[object, ...]]:
        is_of = pl.col("traffic").eq
        rows = pl.scan_parquet(paths, hive_partitioning=False, storage_options=storage_options).filter(
            pl.col("project_id") == "bench"
        )
        counts = [is_of("human").sum().alias("human"), is_of("ai").sum().alias("ai"), pl.len().alias("views")]
        ordered = rows.group_by("path").agg(counts).sort(["views", "path"], descending=[True, False])
        return ordered.collect().rows()

    ways: dict[str, Callable[[], list[tuple[object, ...]]]] = {
        "DuckDB, local files": lambda: by_duckdb(on_disk),
        "DuckDB, cached objects through fsspec": lambda: by_duckdb(objects),
        "Polars, local files": lambda: by_polars(on_disk),
        "Polars, the object store": lambda: by_polars(objects, options),
    }
    expected = by_duckdb(objects)
    for _ in range(RUNS):
        for name, count in ways.items():
            began_s, cpu_s = time.perf_counter(), time.process_time()
            assert count() == expected, name
            figures.add(f"count of {FILES} files: {name}", (time.perf_counter() - began_s) * 1000)
            figures.add(f"count of {FILES} files: {name}", (time.process_time() - cpu_s) * 1000, "ms of a processor")


def _add(figures: Figures, name: str, running: Server, ask: Callable[[], object]) -> None:
    """Add the time of a request, and the processor time of the server meanwhile."""
    began_s, cpu_s = time.perf_counter(), running.cpu_s()
    ask()
    figures.add(name, (time.perf_counter() - began_s) * 1000)
    figures.add(name, (running.cpu_s() - cpu_s) * 1000, "ms of a processor")


if __name__ == "__main__":
    main(*sys.argv[1:])
