"""Processes that `tests.processes.forked` starts."""

import os
import signal

from tests.processes import forked


def test_process_leads_its_session_as_soon_as_its_id_is_known() -> None:
    for _ in range(20):
        process = forked.start("import time; time.sleep(60)", [])
        assert os.getsid(process.pid) == os.getpgid(process.pid) == process.pid
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait(60) == -signal.SIGKILL
