"""Programs that tests need. In CI one that is not there is a failure; elsewhere its tests are skipped."""

import os
from typing import NoReturn

import pytest

from agent import sandbox


def require_sandbox() -> None:
    if reason := sandbox.missing():
        lacking(reason)


def lacking(reason: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
