"""Folders of a job in the layout of the service, and a coding agent that runs in them."""

import secrets
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.coding_agent import runner
from agent.coding_agent.runner import RunRequest, RunResult
from agent.sandbox import bubblewrap

PYTHON = str(bubblewrap.python()[0])
SECRET = "what-only-the-service-may-read"


@dataclass
class Job:
    """Job in the data folder of a service. `output` is everything that the coding agent printed."""

    data: Path
    output: bytes = b""

    def __post_init__(self) -> None:
        for name in ("1/tree", "1/home", "1/git/hooks", "2/tree", "2/home"):
            (self.data / "jobs" / name).mkdir(parents=True)
        (self.data / "control.db").write_text(SECRET)
        (self.data / "jobs/2/tree/secret").write_text(SECRET)
        (self.data / "jobs/1/git/config").write_text(SECRET)
        (self.tree / "README").write_text("A project.\n")

    @property
    def tree(self) -> Path:
        return self.data / "jobs/1/tree"

    @property
    def home(self) -> Path:
        return self.data / "jobs/1/home"

    @property
    def git(self) -> Path:
        return self.data / "jobs/1/git"

    def run(self, **options: Any) -> RunResult:
        request: dict[str, Any] = {
            "preset": "command",
            "prompt": "Do it.",
            "tree": self.tree,
            "home": self.home,
            "limit_s": 60,
            "is_stopped": lambda: False,
            "on_output": self._take,
            **options,
        }
        with ThreadPoolExecutor(1) as thread:  # as a worker has it: other children of this one have memory, too
            return thread.submit(runner.run, RunRequest(**request)).result()

    def shell(self, script: str, **options: Any) -> str:
        """Return what a shell script prints in the sandbox to both streams; its status is ignored."""
        self.output = b""
        self.run(command=["sh", "-c", f"( {script}\n ) 2>&1; true"], **options)
        return self.output.decode()

    def python(self, script: str, **options: Any) -> str:
        self.output = b""
        self.run(command=[PYTHON, "-c", script], **options)
        return self.output.decode()

    def _take(self, piece: bytes) -> None:
        self.output += piece


def sleeper() -> str:
    """Return a random argument for `sleep`, which identifies the process."""
    return f"{secrets.randbelow(10**6) + 10**5}.{secrets.randbelow(10**6)}1"


def processes(*argv: str) -> list[int]:
    """Return the ids of the processes with exactly this command line."""
    command = "".join(f"{word}\0" for word in argv).encode()
    pids = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if (folder / "cmdline").read_bytes() == command:
                    pids.append(int(folder.name))
            except OSError:
                continue
    return pids
