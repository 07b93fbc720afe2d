"""Worker in a child process, so that agent jobs use neither the GIL nor the descriptors of the server process.

The child is started once the control database has a job: a service without agent jobs does not pay for it. The child
ends when its parent ends, for whatever reason, and is restarted if it dies.

    parent                                         child (agent.worker.child_main)
    configuration as JSON, then EOF     -> stdin
    WAKE, STOP_CLAIMING, EOF to end it  -> pipe
    reports, JSON lines                 <- stdout
"""

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from agent.jobs import store
from agent.worker.threads import RETRY_S, WorkerConfig
from warehouse.database_errors import is_temporary, reason_of

WAKE, STOP_CLAIMING = b"w", b"s"
"""Commands to the worker, one byte each; see the methods of `agent.worker.threads.WorkerThreads`."""
POLL_S = 1.0
"""Seconds between two polls for the first job."""
END_S = 20.0
"""Seconds that the child has to put its turns back before it is killed."""
LOG = logging.getLogger("readership.agent")


class ChildProcess:
    """Handle of a worker in a child process, with the methods of `agent.worker.threads.WorkerThreads`."""

    def __init__(self, config: WorkerConfig, end_s: float = END_S) -> None:
        self._config, self._end_s = config, end_s
        self._queued = threading.Event()
        self._is_claiming = True
        self._is_closing = False
        self._child: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, name="agent jobs")
        self._commands, self._command_end = os.pipe()  # one pipe for all children, open until `close`
        os.set_blocking(self._command_end, False)

    def start(self) -> None:
        if self._config.slots:
            self._thread.start()

    def wake(self) -> None:
        """Look for a turn now instead of at the next poll."""
        self._queued.set()
        self._send(WAKE)

    def stop_claiming(self) -> None:
        """Claim no more turns; running turns continue until `close`. Takes no lock, for use in a signal handler."""
        self._is_claiming = False
        self._send(STOP_CLAIMING)

    def close(self) -> None:
        """Stop the running turns, put them back into the queue, and wait for the child to end."""
        self._is_closing = True
        self._queued.set()
        os.close(self._command_end)
        if self._thread.ident is not None:
            self._thread.join(self._end_s)
            if self._thread.is_alive() and self._child is not None:
                LOG.error("the worker of agent jobs did not end within %g s and is killed", self._end_s)
                self._child.kill()
            self._thread.join()
        os.close(self._commands)

    def _send(self, command: bytes) -> None:
        if self._is_closing:
            return
        with suppress(BlockingIOError):  # the pipe is full of commands that the child has not read yet
            os.write(self._command_end, command)

    @property
    def _is_ending(self) -> bool:
        return self._is_closing or not self._is_claiming

    def _run(self) -> None:
        """Run one child after the other, from the first job on."""
        while not self._is_ending:
            try:
                if store.has_any(self._config.control):
                    self._run_child()
                    pause_s = RETRY_S
                else:
                    pause_s = POLL_S
            except Exception as error:  # an outage of the database, or a lack of memory or processes, may end
                if is_temporary(error):
                    LOG.warning("agent jobs wait for the control database: %s", reason_of(error))
                else:
                    LOG.exception("cannot start the worker of agent jobs; retrying")
                pause_s = RETRY_S
            if not self._is_closing:
                self._queued.wait(pause_s)
                self._queued.clear()

    def _run_child(self) -> None:
        path = os.pathsep.join(filter(None, (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH"))))
        with subprocess.Popen(  # noqa: S603  # our own interpreter and module
            [sys.executable, "-P", "-m", "agent.worker.child_main", str(self._commands)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(self._commands,),
            env={**os.environ, "PYTHONPATH": path},  # ours come before packages in the child's working directory
        ) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            self._child = child
            with suppress(BrokenPipeError), child.stdin:
                child.stdin.write(self._config_json())
            self._process_reports(child.stdout)
        if not self._is_ending:
            LOG.error("the worker of agent jobs ended with status %d; restarting it", child.returncode)

    def _config_json(self) -> bytes:
        """Return the child's configuration as JSON. It contains secrets, so it is sent to standard input only.

        `json` escapes bytes of the environment that are not UTF-8, and msgspec refuses them.
        """
        config = self._config
        paths, lake = [config.control.url, str(config.folder)], str(config.lake) if config.lake else None
        values = [*paths, dict(config.environ), config.slots, config.lease_s, config.retention_days, lake]
        return json.dumps(values).encode()

    def _process_reports(self, lines: IO[bytes]) -> None:
        """Count and log the reports of the child, until the child closes its standard output."""
        functions: dict[str, Callable[..., None]] = {
            "turn": self._config.on_turn,
            "delivery": self._config.on_delivery,
            "log": _log,
        }
        for line in lines:
            name, arguments = json.loads(line)
            functions[name](*arguments)


def _log(record: dict[str, Any]) -> None:
    """Log a record of the child, if its level is logged here."""
    logger = logging.getLogger(record["name"])
    if logger.isEnabledFor(record["levelno"]):
        logger.handle(logging.makeLogRecord(record))
