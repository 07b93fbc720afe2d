"""Views of readers, grouped by source, traffic and day, add up to the rows from which they were made."""

import numpy as np
import pyarrow as pa
from warehouse.blocks import agents, selection
from warehouse.blocks.months import CELL_VIEWS_MAX
from warehouse.blocks.paths import PathIds

DAYS = np.array([1, 31, 1, 2], np.uint8)
IDS = np.array([1, 0, 1, 0], np.uint32)
SOURCES, TRAFFIC = np.array([2, 0, 2, 1], np.uint8), np.array([1, 2, 1, 1], np.uint8)
VIEWS = np.array([3 * CELL_VIEWS_MAX + 1, CELL_VIEWS_MAX, 1, CELL_VIEWS_MAX + 1], np.uint32)
ALL = {(source, traffic) for source in range(3) for traffic in range(3)}


def test_rows_with_more_views_than_a_cell_add_up() -> None:
    grouped = agents.group(DAYS, IDS, SOURCES, TRAFFIC, VIEWS)
    chosen = selection.select(PathIds(pa.array(["/a", "/b"])), None, None, ("human", "ai", "bot"))
    by_day = grouped.by_day(chosen, ALL)
    assert [by_day[1, 0], by_day[1, 1], by_day[2, 30], by_day.sum()] == [767, 256, 255, 1_278]
    sums = [np.zeros(2, np.uint32) for _ in range(3)]
    grouped.add(sums, chosen, ALL, range(1, 32), is_subtracted=False)
    assert [each.tolist() for each in sums] == [[0, 0], [256, 767], [255, 0]]
    grouped.add(sums, chosen, {(2, 1)}, range(1, 2), is_subtracted=True)
    grouped.add(sums, chosen, ALL, range(2, 31), is_subtracted=True)
    assert [each.tolist() for each in sums] == [[0, 0], [0, 0], [255, 0]]
