"""A job's folders as the service lays them, below its data, and an agent that runs in them."""

import secrets
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
    """`data` is the service's; the job's git directory is beside its work tree. `output`: all that the agent wrote."""

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

    def run(self, **given: Any) -> RunResult:
        request: dict[str, Any] = {
            "preset": "command",
            "prompt": "Do it.",
            "tree": self.tree,
            "home": self.home,
            "limit_s": 60,
            "is_stopped": lambda: False,
            "on_output": self._take,
            **given,
        }
        return runner.run(RunRequest(**request))

    def shell(self, script: str, **given: Any) -> str:
        """What a shell script prints in the box, both streams, whatever its status."""
        self.output = b""
        self.run(command=["sh", "-c", f"( {script}\n ) 2>&1; true"], **given)
        return self.output.decode()

    def python(self, script: str, **given: Any) -> str:
        self.output = b""
        self.run(command=[PYTHON, "-c", script], **given)
        return self.output.decode()

    def _take(self, piece: bytes) -> None:
        self.output += piece


def sleeper() -> str:
    """Seconds for `sleep` that no other process of this machine sleeps."""
    return f"{secrets.randbelow(10**6) + 10**5}.{secrets.randbelow(10**6)}1"


def processes(*argv: str) -> list[int]:
    """The processes of this machine that run exactly this."""
    command = "".join(f"{word}\0" for word in argv).encode()
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if (folder / "cmdline").read_bytes() == command:
                    found.append(int(folder.name))
            except OSError:
                continue
    return found
