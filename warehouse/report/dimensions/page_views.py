"""Page views of the paths of a project in the rollup of a month, and their profiles.

pyarrow reads the row groups of the paths. If the caller wants none of the profiles, no page view is read.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warehouse.blocks.cumulative import Array
from warehouse.blocks.project import ProjectBlock
from warehouse.encoding import encoded
from warehouse.lake import roots
from warehouse.lake.roots import Root
from warehouse.query.result_cache import ResultCache
from warehouse.report.dimensions.rows import Column, column_of
from warehouse.rollups.coverage import Rollup
from warehouse.rollups.schema import PROFILES, VIEW_VALUES

BATCH_GROUPS = 8
"""Number of row groups that are read at once, which limits the memory for many paths."""
GROUP_BYTES = 1_000
"""Memory of the metadata of a row group, in bytes."""
_PROFILE = "profile_id"
_KEY = ("project_id", "path_id")


@dataclass(frozen=True, slots=True)
class PathMonth:
    """Paths of a project in the rollup of a month, by the ids that the rollup has for them.

    If `is_markdown`, only Markdown that people read is counted.
    """

    rollup: Rollup
    project: str
    ids: range
    is_markdown: bool = False


def of_block(block: ProjectBlock, index: int, ids: slice) -> PathMonth:
    """Return the paths with some sorted path ids of a block, by their ids in the rollup of a month."""
    is_member = block.is_member(index)
    first = int(np.count_nonzero(is_member[: ids.start]))
    return PathMonth(
        block.parts[index].rollup, block.project, range(first, first + int(np.count_nonzero(is_member[ids])))
    )


@dataclass(frozen=True, slots=True, eq=False)
class Profiles:
    """Profiles of a month: the columns of PROFILES, with an item for each profile."""

    columns: Mapping[str, Column]

    @property
    def count(self) -> int:
        return len(self.columns["source"].codes)

    @property
    def nbytes(self) -> int:
        return sum(each.codes.nbytes + int(each.texts.nbytes) for each in self.columns.values())


@dataclass(frozen=True, slots=True, eq=False)
class _Groups:
    """Row groups of `path_views.parquet`: for each the first and last project, and the first and last path id."""

    metadata: pq.FileMetaData
    bounds: Sequence[tuple[str, str, int, int]]

    @property
    def nbytes(self) -> int:
        return GROUP_BYTES * len(self.bounds)


def profiles(cached: ResultCache, rollup: Rollup) -> Profiles:
    """Return the profiles of a month, of all projects."""

    def read() -> Profiles:
        rows = pq.read_table(roots.open_parquet(rollup.profiles), read_dictionary=PROFILES.names, use_threads=False)
        return Profiles({name: column_of(encoded(rows[name])) for name in PROFILES.names})

    return cached(("profiles", rollup.folder), read)


def read(
    cached: ResultCache,
    month: PathMonth,
    columns: Sequence[str],
    is_wanted: Array | None = None,
    *,
    reads_all: bool = False,
) -> Iterator[pa.Table]:
    """Yield columns of the page views of the paths of a month, a few row groups at a time, in the order of the file.

    `is_wanted` has an item for each profile; without it, the page views of all profiles are wanted. With `reads_all`,
    the page views of unwanted profiles are yielded, too, unless no profile is wanted: filtering them while reading is
    slower if most page views are wanted.
    """
    if not month.ids or (is_wanted is not None and not is_wanted.any()):
        return
    file = month.rollup.path_views
    groups: _Groups = cached(("groups", file), partial(_groups, file))
    texts = ["project_id", *VIEW_VALUES.values()]
    with pq.ParquetFile(roots.open_parquet(file), metadata=groups.metadata, read_dictionary=texts) as source:
        for numbers, is_cut in _batches(groups, month):
            if is_wanted is None or reads_all:
                yield _read(source, numbers, month, columns, is_cut=is_cut)
            else:
                yield from _read_wanted(source, numbers, month, columns, is_wanted, is_cut=is_cut)


def _batches(groups: _Groups, month: PathMonth) -> Iterator[tuple[list[int], bool]]:
    """Yield the numbers of adjacent row groups that have rows of the paths, and whether they have other rows too."""
    batch: list[int] = []
    for number, (first_project, last_project, first, last) in enumerate(groups.bounds):
        if not (first_project <= month.project <= last_project and first < month.ids.stop and last >= month.ids.start):
            continue
        is_whole = first_project == last_project and first >= month.ids.start and last < month.ids.stop
        if batch and (not is_whole or len(batch) == BATCH_GROUPS):
            yield batch, False
            batch = []
        if is_whole:
            batch.append(number)
        else:
            yield [number], True
    if batch:
        yield batch, False


def _read_wanted(
    source: pq.ParquetFile,
    groups: Sequence[int],
    month: PathMonth,
    columns: Sequence[str],
    is_wanted: Array,
    *,
    is_cut: bool,
) -> Iterator[pa.Table]:
    """Yield the rows of wanted profiles. Row groups without such a row are read only in the column of profiles."""
    for group in groups:
        ids = _read(source, [group], month, [_PROFILE], is_cut=is_cut)[_PROFILE].to_numpy()
        rows = np.flatnonzero(is_wanted[ids])
        if rows.size:
            yield _read(source, [group], month, columns, is_cut=is_cut).take(pa.array(rows))


def _read(
    source: pq.ParquetFile, groups: Sequence[int], month: PathMonth, columns: Sequence[str], *, is_cut: bool
) -> pa.Table:
    """Return columns of the rows of the paths in row groups. If `is_cut`, the row groups have other rows, too."""
    if not is_cut:
        return source.read_row_groups(groups, columns, use_threads=False)
    rows = source.read_row_groups(groups, [*dict.fromkeys((*_KEY, *columns))], use_threads=False)
    ids = rows["path_id"].to_numpy()
    is_of_month = (ids >= month.ids.start) & (ids < month.ids.stop)
    is_of_month &= pc.equal(rows["project_id"], month.project).to_numpy()
    # The rows of a project's paths are adjacent.
    return rows.select(columns).slice(int(np.argmax(is_of_month)), int(np.count_nonzero(is_of_month)))


def _groups(file: Root) -> _Groups:
    metadata = pq.read_metadata(roots.open_parquet(file))
    bounds = []
    for number in range(metadata.num_row_groups):
        project, path_id = (metadata.row_group(number).column(index).statistics for index in (0, 1))
        bounds.append((project.min, project.max, path_id.min, path_id.max))
    return _Groups(metadata, bounds)
