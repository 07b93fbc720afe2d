"""Temporary folders for tests that cannot use pytest's, such as the examples of a Hypothesis test."""

import os
from tempfile import TemporaryDirectory


def folder() -> TemporaryDirectory[str]:
    """Return a temporary folder beside those of pytest, which are in memory where there is space: see conftest.py."""
    return TemporaryDirectory(prefix="readership-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT"))
