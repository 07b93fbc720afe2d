"""Settings of all tests."""

import time

from hypothesis import given, settings
from hypothesis import strategies as st


@settings(max_examples=1)
@given(st.just(0.3))
def test_example_that_takes_0_3_s_passes(duration_s: float) -> None:
    """On a loaded machine, an example of any test may take as long."""
    time.sleep(duration_s)
