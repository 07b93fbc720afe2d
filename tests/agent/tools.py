"""The sandbox that tests need."""

from agent.sandbox import bubblewrap
from tests.programs import require, skip


def require_sandbox() -> None:
    """Skip the test where no sandbox can be made."""
    require(*bubblewrap.PROGRAMS)
    if reason := bubblewrap.missing():
        skip("a machine that allows a sandbox", reason)
