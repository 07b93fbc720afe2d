"""Running service with a project whose jobs work on a real git repository and open pull requests at a forge double."""

import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx

from agent.jobs import configuration
from agent.jobs.configuration import Configuration
from tests.agent.forge_doubles.double import ForgeDouble, ForgeKind, Pull
from tests.agent.forge_doubles.server import forge_double
from tests.agent.servers.git_server import GitServer, serving
from tests.processes.running import PROJECT, Running, new_key
from tests.processes.waiting import until
from warehouse.control import projects
from warehouse.database.pool import Pool

SECRETS = {"GIT_TOKEN": "git-token", "MODEL_KEY": "sk-the-real-model-key-0123456789"}
REPOSITORY = "team/site"
END_S = 120
WRITE = ("sh", "-c", 'cat > "$(date +%N).md"')
"""Command of a coding agent that writes its prompt to a new file."""


@dataclass(kw_only=True)
class Client:
    """Client of the agent jobs API of `running`, which can also use the command line."""

    running: Running = field(default_factory=lambda: Running(Path()))
    project: str = PROJECT

    def of(self, project: str) -> "Site":
        """Create another project and a key for it, and return a client of that project."""
        key = new_key(self.running.data, project, environ=self.running.environ)
        return replace(self, running=replace(self.running, key=key), project=project)

    def configure(self, *options: str) -> None:
        """Change the project's configuration by the command line."""
        done = self.running.run("project", "agent", self.project, *options)
        assert done.returncode == 0, done.stderr

    @property
    def _jobs(self) -> str:
        return f"{self.running.url}/v2/agent/{self.project}/job"

    def ask(self, method: str, path: str = "", **options: Any) -> httpx.Response:
        return httpx.request(method, f"{self._jobs}{path}", headers=self.running.auth, timeout=60, **options)

    def create(self, prompt: str = "Write a page") -> str:
        answer = self.ask("POST", json={"prompt": prompt})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def message(self, id: str, prompt: str) -> None:
        answer = self.ask("POST", f"/{id}/message", json={"prompt": prompt})
        assert answer.status_code == 200, answer.text

    def job(self, id: str) -> dict[str, Any]:
        job: dict[str, Any] = self.ask("GET", f"/{id}").json()
        return job

    def log(self, id: str) -> str:
        return self.ask("GET", f"/{id}/log").text

    def active(self) -> int:
        """Return the number of active jobs."""
        listed = httpx.get(f"{self._jobs}s?status=active", headers=self.running.auth, timeout=60)
        return len(listed.json()["jobs"])

    def ended(self, id: str, within_s: float = END_S) -> dict[str, Any]:
        """Wait until the job is no longer active, and return it."""
        until(lambda: self.job(id)["status"] != "active", within_s)
        return self.job(id)

    def completed(self, id: str, within_s: float = END_S) -> dict[str, Any]:
        job = self.ended(id, within_s)
        assert job["status"] == "completed", self.log(id)
        return job

    def failed(self, id: str) -> str:
        """Wait until the job has failed, and return the reason in its log."""
        assert self.ended(id)["status"] == "failed", self.log(id)
        return self.log(id).rpartition("failure: ")[2].strip()


@dataclass(kw_only=True)
class Site(Client):
    """Client of a project whose repository is at the server `git`, and whose forge is the double `forge`."""

    git: GitServer
    forge: ForgeDouble

    def set_up(self, *options: str) -> None:
        """Set the project's configuration; without options, the coding agent is `WRITE`."""
        self.configure(
            *("--repository", f"{self.git.url}/{REPOSITORY}.git", "--git-token", "env:GIT_TOKEN"),
            *("--host", self.forge.kind, "--api-base", self.forge.api, "--webhook", "", "--webhook-secret", ""),
            *("--sandbox", "--time-limit-s", "600", *(options or command(*WRITE))),
        )

    def clear(self) -> None:
        """Reset the repository and the pull requests to their state before the first job."""
        shutil.rmtree(self.git.path(REPOSITORY))
        self.git.create(REPOSITORY, {"README.md": b"A site\n"})
        self.git.tokens, self.git.public = {"git-token": "write"}, False
        self.forge.tokens = {"git-token": "write"}
        self.forge.pulls.clear()

    def pushed(self, id: str) -> list[str]:
        """Return the subjects of the commits on the job's branch, from oldest to newest; none without a branch."""
        branch = f"readership/{id}"
        return self.git.log(REPOSITORY, branch)[::-1] if branch in self.git.branches(REPOSITORY) else []

    def pulls(self, id: str) -> list[Pull]:
        return [pull for pull in self.forge.pulls if pull.branch == f"readership/{id}"]


def command(*argv: str) -> tuple[str, ...]:
    """Return the options of the command line that set this coding agent."""
    return ("--preset", "command", "--command", shlex.join(argv))


def store_configuration(engine: Pool, site: Site, *argv: str, **more: Any) -> None:
    """Create the project in a database without a service; its coding agent is this command, without a sandbox."""
    projects.create(engine, PROJECT, (), 0)
    settings = {
        "repository": f"{site.git.url}/{REPOSITORY}.git",
        "git_token": "env:GIT_TOKEN",
        "forge": site.forge.kind,
        "api_base": site.forge.api,
        "preset": "command",
        "command": argv,
        "is_sandboxed": False,
        **more,
    }
    configuration.store(engine, PROJECT, configuration.changed(Configuration(repository=""), settings))


@contextmanager
def make_site(folder: Path, kind: ForgeKind = "github") -> Iterator[Site]:
    """Run a git server and a forge double; the caller starts the service."""
    (folder / "git").mkdir()
    with ExitStack() as stack:
        git = stack.enter_context(serving(folder / "git"))
        git.create(REPOSITORY, {"README.md": b"A site\n"})
        forge = stack.enter_context(
            forge_double(
                kind, path=REPOSITORY, branches=lambda: git.branches(REPOSITORY), tokens={"git-token": "write"}
            )
        )
        yield Site(git=git, forge=forge)


Start = Callable[..., Running]
