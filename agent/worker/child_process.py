"""A worker in a child process, so that agent jobs take neither the GIL nor the descriptors of the process that answers.

The child starts once the control database has a job: a service without agent jobs does not pay for it. It ends with its
parent, however that ends, and is started again if it dies.

    parent                                         child (agent.worker_main)
    WorkerConfig as JSON, then EOF      -> stdin
    WAKE, REST, EOF to end the child    -> pipe
    counts and log records, JSON lines  <- stdout
"""

import json
import logging
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO

from agent.jobs import store
from agent.worker.worker import FAULT_S, WorkerConfig
from warehouse.database_errors import is_temporary, reason_of

WAKE, REST = b"w", b"r"
"""Commands: a turn was queued; begin no more turns."""
LOOK_S = 1.0
"""Seconds between two looks for the first job."""
END_S = 20.0
"""Seconds that the child has to put its turns back before it is killed."""
LOG = logging.getLogger("readership.agent")


class WorkerProcess:
    """The methods of `agent.worker.worker.Worker`, for a worker in a child process."""

    def __init__(self, config: WorkerConfig) -> None:
        self._config = config
        self._queued = threading.Event()
        self._is_resting = False
        self._is_closing = False
        self._child: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, name="agent jobs")
        self._commands, self._command_end = os.pipe()  # one for all children: its number is never another file's
        os.set_blocking(self._command_end, False)

    def start(self) -> None:
        if self._config.slots:
            self._thread.start()

    def wake(self) -> None:
        """Look at the queue now: a turn was added."""
        self._queued.set()
        self._send(WAKE)

    def take_no_more(self) -> None:
        """Leave the turns that wait to other processes. For a signal's handler, which may take no lock."""
        self._is_resting = True
        self._send(REST)

    def close(self) -> None:
        """Stop the turns that run and put them back."""
        self._is_closing = True
        self._queued.set()
        os.close(self._command_end)
        if self._thread.ident is not None:
            self._thread.join(END_S)
            if self._thread.is_alive() and self._child is not None:
                LOG.error("the process of the agent jobs did not end within %g s and is killed", END_S)
                self._child.kill()
            self._thread.join()
        os.close(self._commands)

    def _send(self, command: bytes) -> None:
        if self._is_closing:
            return
        with suppress(BlockingIOError):  # the pipe is full of commands that the child has not read yet
            os.write(self._command_end, command)

    def _run(self) -> None:
        while not (self._is_closing or self._is_resting):
            try:
                if store.has_any(self._config.engine):
                    self._run_child()
                    pause_s = FAULT_S
                else:
                    pause_s = LOOK_S
            except Exception as error:  # the database answers again, and the machine can start a process again
                if is_temporary(error):
                    LOG.warning("agent jobs wait for the control database: %s", reason_of(error))
                else:
                    LOG.exception("the process of the agent jobs cannot be started; it is tried again")
                pause_s = FAULT_S
            if not self._is_closing:
                self._queued.wait(pause_s)
                self._queued.clear()

    def _run_child(self) -> None:
        """Start the child and follow it to its end."""
        with subprocess.Popen(  # noqa: S603  # this very interpreter and a module of ours
            [sys.executable, "-P", "-m", "agent.worker.child_main", str(self._commands)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(self._commands,),
            env={**os.environ, "PYTHONPATH": _module_path()},
        ) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            self._child = child
            with suppress(BrokenPipeError), child.stdin:
                child.stdin.write(self._given())
            self._follow(child.stdout)
        if not (self._is_closing or self._is_resting):
            LOG.error("the process of the agent jobs ended with status %d; another is started", child.returncode)

    def _given(self) -> bytes:
        """Return the child's configuration as JSON. It contains secrets, so it is sent to standard input only."""
        config = self._config
        given = {
            "database_url": config.engine.url.render_as_string(hide_password=False),
            "folder": str(config.folder),
            "environ": dict(config.environ),
            "slots": config.slots,
            "lease_s": config.lease_s,
            "retention_days": config.retention_days,
            "lake": str(config.lake) if config.lake else None,
        }
        return json.dumps(given).encode()

    def _follow(self, lines: IO[bytes]) -> None:
        """Count and log what the child reports, until it ends."""
        for line in lines:
            kind, content = json.loads(line)
            if kind == "turn":
                self._config.on_turn(*content)
            elif kind == "delivery":
                self._config.on_delivery(content)
            else:
                record, logger = logging.makeLogRecord(content), logging.getLogger(content["name"])
                if logger.isEnabledFor(record.levelno):
                    logger.handle(record)


def _module_path() -> str:
    """Return PYTHONPATH for the child: our packages first, whatever its working directory has."""
    root = str(Path(__file__).parents[2])
    return os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
