"""Rows of a dimension in memory."""

import numpy as np
from warehouse.report.dimensions.rows import indices_of


def test_null_index_is_stored_as_an_index_of_a_text() -> None:
    indices = indices_of(np.array([-1, 2, -2]))
    assert indices.to_pylist() == [None, 2, None]
    assert np.frombuffer(indices.buffers()[1], np.int32)[:3].tolist() == [0, 2, 0]
