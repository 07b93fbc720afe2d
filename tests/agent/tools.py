"""Requirement of a sandbox."""

from agent.sandbox import bubblewrap
from tests.programs import require, skip


def require_sandbox() -> None:
    """Skip the test on a machine that allows no sandbox."""
    require(*bubblewrap.PROGRAMS)
    if reason := bubblewrap.unavailable_reason():
        skip("a machine that allows a sandbox", reason)
