"""A running service with a project whose jobs work on a real repository, and open pull requests at a forge."""

import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import sqlalchemy as sa

from agent.jobs import configuration
from agent.jobs.configuration import Configuration
from tests.agent.forge_doubles import ForgeDouble, ForgeKind, Pull, forge_double
from tests.agent.git_server import GitServer, serving
from tests.running import PROJECT, Running, new_key
from tests.waiting import until
from warehouse.control import projects

SECRETS = {"GIT_TOKEN": "git-token", "MODEL_KEY": "sk-the-real-model-key-0123456789"}
REPOSITORY = "team/site"
END_S = 120
WRITE = ("sh", "-c", 'cat > "$(date +%N).md"')
"""A coding agent that writes its prompt into a new file."""


@dataclass(kw_only=True)
class Client:
    """Of the agent jobs of `running`, whose operator it is too."""

    running: Running = field(default_factory=lambda: Running(Path()))
    project: str = PROJECT

    def of(self, project: str) -> "Site":
        """The same with a project more of the running service, which is made, and a key of it."""
        key = new_key(self.running.data, project, environ=self.running.environ)
        return replace(self, running=replace(self.running, key=key), project=project)

    def configure(self, *options: str) -> None:
        """Set what is not set, or is to be set anew, by the command line."""
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
        found: dict[str, Any] = self.ask("GET", f"/{id}").json()
        return found

    def log(self, id: str) -> str:
        return self.ask("GET", f"/{id}/log").text

    def active(self) -> int:
        """How many jobs are."""
        listed = httpx.get(f"{self._jobs}s?status=active", headers=self.running.auth, timeout=60)
        return len(listed.json()["jobs"])

    def ended(self, id: str, within_s: float = END_S) -> dict[str, Any]:
        """The job, once it is not active."""
        until(lambda: self.job(id)["status"] != "active", within_s)
        return self.job(id)

    def completed(self, id: str, within_s: float = END_S) -> dict[str, Any]:
        job = self.ended(id, within_s)
        assert job["status"] == "completed", self.log(id)
        return job

    def failed(self, id: str) -> str:
        """Its reason, as its log tells it."""
        assert self.ended(id)["status"] == "failed", self.log(id)
        return self.log(id).rpartition("failure: ")[2].strip()


@dataclass(kw_only=True)
class Site(Client):
    """`git` is the repository's server, `forge` its forge."""

    git: GitServer
    forge: ForgeDouble

    def begin(self, *options: str) -> None:
        """The project's configuration, with the agent `WRITE` unless the options say otherwise."""
        self.configure(
            *("--repository", f"{self.git.url}/{REPOSITORY}.git", "--git-token", "env:GIT_TOKEN"),
            *("--git-user", self.git.user),
            *("--host", self.forge.kind, "--api-base", self.forge.api, "--webhook", "", "--webhook-secret", ""),
            *("--sandbox", "--time-limit-s", "600", *(options or command(*WRITE))),
        )

    def clear(self) -> None:
        """As before the first job, at the git server and the forge."""
        shutil.rmtree(self.git.path(REPOSITORY))
        self.git.create(REPOSITORY, {"README.md": b"A site\n"})
        self.git.tokens, self.git.public = {"git-token": "write"}, False
        self.forge.tokens = {"git-token": "write"}
        self.forge.pulls.clear()

    def pushed(self, id: str) -> list[str]:
        """The subjects of the commits on its branch, the first one first; none if there is no branch."""
        branch = f"readership/{id}"
        return self.git.log(REPOSITORY, branch)[::-1] if branch in self.git.branches(REPOSITORY) else []

    def pulls(self, id: str) -> list[Pull]:
        return [pull for pull in self.forge.pulls if pull.branch == f"readership/{id}"]


def command(*argv: str) -> tuple[str, ...]:
    """The options for this coding agent."""
    return ("--preset", "command", "--command", shlex.join(argv))


def configured(engine: sa.Engine, made: Site, *argv: str, **more: Any) -> None:
    """The project in a database without a service: its coding agent is this command, without the sandbox."""
    projects.create(engine, PROJECT, (), 0)
    given = {
        "repository": f"{made.git.url}/{REPOSITORY}.git",
        "git_token": "env:GIT_TOKEN",
        "forge": made.forge.kind,
        "api_base": made.forge.api,
        "preset": "command",
        "command": argv,
        "is_sandboxed": False,
        **more,
    }
    configuration.store(engine, PROJECT, configuration.changed(Configuration(repository=""), given))


@contextmanager
def site(folder: Path, kind: ForgeKind = "github") -> Iterator[Site]:
    """The servers beside the service, which is still to be started."""
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
