"""The sandbox that tests need."""

from agent import sandbox
from tests.programs import require, skip


def require_sandbox() -> None:
    """Skip the test where no sandbox can be made."""
    require(*sandbox.PROGRAMS)
    if reason := sandbox.missing():
        skip("a machine that allows a sandbox", reason)
