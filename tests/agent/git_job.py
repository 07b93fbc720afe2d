"""Git steps of one job, called as a worker calls them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from agent.git import workspace
from agent.git.commands import StepControl
from agent.git.remote import Remote
from agent.git.workspace import Checkout, Workspace
from tests.agent.servers.git_server import GitServer

BRANCH = "readership/j1"
TOKEN = "git-token"
AT = datetime(2026, 5, 1, 12, tzinfo=UTC)


@dataclass
class Job:
    """Workspace and repository of a job. `lines` are the lines that git printed to the job's log."""

    workspace: Workspace
    remote: Remote
    lines: list[str] = field(default_factory=list)
    limit_s: float = 60
    is_stopped: Callable[[], bool] = lambda: False

    @property
    def tree(self) -> Path:
        return self.workspace.tree

    @property
    def control(self) -> StepControl:
        return StepControl(self.limit_s, self.is_stopped, self.lines.append)

    def check_out(self) -> Checkout:
        return workspace.check_out(self.workspace, self.remote, BRANCH, self.control)

    def commit(self, prompt: str = "Do it", at: datetime = AT, *, allow_ci: bool = False) -> str | None:
        return workspace.commit(self.workspace, prompt, at, self.control, allow_ci=allow_ci)

    def push(self, commit_id: str) -> None:
        workspace.push(self.workspace, self.remote, BRANCH, commit_id, self.control)

    def is_pushed(self, commit_id: str) -> bool:
        return workspace.is_pushed(self.workspace, self.remote, BRANCH, commit_id, self.control)

    def send(self, prompt: str = "Do it") -> str:
        """Commit and push the work tree, and return the id of the commit."""
        commit_id = self.commit(prompt)
        assert commit_id is not None
        self.push(commit_id)
        return commit_id


def job_of(folder: Path, url: str, token: str | None = TOKEN, ref: str = "main") -> Job:
    return Job(Workspace(folder), Remote(url, ref, token))


def site(server: GitServer) -> str:
    """Create the repository `team/site` with two files, and return its URL."""
    return server.create("team/site", {"README.md": b"# Site\n", "src/page.md": b"old\n"})
