"""Warnings for projects whose views are counted twice, because pages and logs both send them."""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from warehouse.control.policy import Periods
from warehouse.hotlog.connection import HotLogPlace
from warehouse.lake import delta_table, roots
from warehouse.lake.roots import Root
from warehouse.report.source_warnings import SourceWarning
from warehouse.tables import HITS_TABLE

SEARCHED_DAYS = 7
"""Number of the newest days with hits in which `has_beacons` searches: a beacon that is in use sent hits on them."""
CACHE_BYTES = 64 * 1024 * 1024
"""Maximum size of the cache of the reports of `find`, in bytes."""


def has_beacons(root: Root, project: str) -> bool:
    """Return whether pages of a project have sent hits on the newest days of the lake.

    An import calls this function before `find`, because most projects with a log have no beacon, and the libraries of
    the reports take 0.3 s of processor time to import. A day of 10,000 hits is searched in 2 ms.
    """
    files = delta_table.list_files(delta_table.open_table(root, HITS_TABLE), HITS_TABLE)
    days = sorted({file.partition for file in files})[-SEARCHED_DAYS:]
    return any(_has_beacon(file.path, project) for file in files if file.partition in days)


def _has_beacon(file: str, project: str) -> bool:
    names = ["project_id", "source"]
    rows = pq.ParquetFile(roots.at(file).open_parquet(), read_dictionary=names).read(names)
    if not any("beacon" in piece.dictionary.to_pylist() for piece in rows["source"].chunks):
        return False
    return bool(pc.any(pc.and_(pc.equal(rows["source"], "beacon"), pc.equal(rows["project_id"], project))).as_py())


def find(
    hot: HotLogPlace, root: Root, spill: Path, policies: Mapping[str, Periods]
) -> dict[str, tuple[SourceWarning, ...]]:
    """Return the warnings of each project that has one, in the order of `policies`. Raises DataIncomplete."""
    from warehouse.query.snapshot import SnapshotReader  # noqa: PLC0415  # see `has_beacons`
    from warehouse.report.reports import Reports  # noqa: PLC0415  # the same

    with closing(Reports(SnapshotReader(hot, root), root, spill, CACHE_BYTES, policies.__getitem__)) as reports:
        snapshot = reports.take()
        of_project = {project: reports.source_coverage(snapshot, project).counted_twice for project in policies}
    return {project: warnings for project, warnings in of_project.items() if warnings}


def advice(project: str, warning: SourceWarning) -> str:
    """Return a warning of a project with the command that ends the double counting."""
    return f"{project}: {warning}; readership project policy {project} shows and sets which sources count"
