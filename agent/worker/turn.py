"""One turn of a job, in steps: check out, run the coding agent, commit, push, open the pull request.

A step that is finished is noted with what the next ones need of it, and is not done again by whoever takes the turn
over. Each note is refused to a worker that has lost the turn, so that it gets no further than the step it is in.
"""

import fcntl
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import sqlalchemy as sa

from agent import retry
from agent.coding_agent import runner
from agent.coding_agent.presets import COMMAND, PRESETS
from agent.coding_agent.runner import RunRequest
from agent.errors import TurnFailed, TurnStopped
from agent.forge import pull_request
from agent.forge.forges import Proposal
from agent.git import workspace
from agent.git.remote import USERNAME, Remote
from agent.git.workspace import Workspace
from agent.jobs import configuration, queue, secret_ref
from agent.jobs.configuration import Configuration
from agent.jobs.queue import Earlier, Lease

GIT_LIMIT_S = 600.0
"""Of a step that speaks to the repository's host."""
LOCK_POLL_S = 0.1
SHORT = 10
"""Characters of a commit's id that tell it from others."""


@dataclass(frozen=True, slots=True)
class TurnContext:
    """Resources of a worker that a turn uses. `on_output` receives what git and the coding agent print."""

    engine: sa.Engine
    folder: Path
    environ: Mapping[str, str] = field(repr=False)
    now_us: Callable[[], int]
    is_stopped: Callable[[], bool]
    on_output: Callable[[bytes], None]


def perform(lease: Lease, context: TurnContext) -> str | None:
    """Do what is left of the turn; returns the URL of the job's pull request, if it has one.

    Raises:
        TurnFailed: with the reason.
        TurnStopped: as `is_stopped` asked for.
        LeaseLost: another worker has the turn now, or it was cancelled.
    """
    with context.engine.connect() as connection:
        chosen = configuration.load(connection, lease.job.project)
    _require_same_host(lease, chosen)
    _require_same_model_server(lease, chosen)
    folder = context.folder / lease.job.id
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _alone(folder, context.is_stopped):
        turn = _Turn(lease, context, chosen, Workspace(folder), _remote(lease, chosen, context.environ))
        turn.require_files()
        turn.check_out()
        turn.run()
        turn.commit()
        turn.push()
        return turn.open_pull_request()


def _require_same_host(lease: Lease, chosen: Configuration) -> None:
    """The project's token is for the host of its repository, and for no other."""
    job, project = (urlsplit(url)[:2] for url in (lease.job.repository, chosen.repository))
    if job != project:
        raise TurnFailed(
            f"the project's repository is at another host now, {chosen.repository}, and its token is not sent to the "
            "old one: create a new job"
        )


def _require_same_model_server(lease: Lease, chosen: Configuration) -> None:
    """The project's model key is for the model server of its coding agent of now, and for no other."""
    if not chosen.model_key or chosen.model_base or lease.job.preset == chosen.preset:
        return
    job, project = (PRESETS[name].upstream if name in PRESETS else None for name in (lease.job.preset, chosen.preset))
    if job is not None and job != project:
        raise TurnFailed(
            f"the project's coding agent is {chosen.preset} now, and its model key is not sent to the model server of "
            f"{lease.job.preset}, which this job keeps: create a new job"
        )


def _remote(lease: Lease, chosen: Configuration, environ: Mapping[str, str]) -> Remote:
    token = secret_ref.resolve(chosen.git_token, environ) if chosen.git_token else None
    return Remote(lease.job.repository, lease.job.ref, token, chosen.git_user or USERNAME)


@contextmanager
def _alone(folder: Path, is_stopped: Callable[[], bool]) -> Iterator[None]:
    """Wait until a worker of this machine that has lost the turn, but does not know it yet, has left the folder."""
    with (folder / ".lock").open("w") as handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if is_stopped():
                    raise TurnStopped("the turn was stopped") from None
                time.sleep(LOCK_POLL_S)
        yield


def _told(earlier: Earlier) -> str:
    return earlier.prompt if earlier.is_kept else f"(This did not succeed; nothing of it is kept.)\n{earlier.prompt}"


class _Turn:
    """A turn on its way: `lease` grows by each finished step."""

    def __init__(
        self, lease: Lease, context: TurnContext, chosen: Configuration, workspace: Workspace, remote: Remote
    ) -> None:
        self._lease, self._context, self._chosen = lease, context, chosen
        self._workspace, self._remote = workspace, remote
        self._mark = workspace.folder / ".turn"
        self._is_again = lease.attempt > 1 or bool(lease.steps)

    def require_files(self) -> None:
        """Begin with the first step if the agent had not finished, or its files are another attempt's or machine's."""
        steps = self._lease.steps
        if "push" in steps or ("commit" in steps and steps["commit"]["commit"] is None):
            return  # no file is needed any more
        is_here = self._mark.exists() and self._mark.read_text() == steps.get("check out", {}).get("mark")
        if "run" in steps and is_here:
            return
        made = steps["commit"]["commit"] if "commit" in steps else None
        if made and workspace.is_pushed(self._workspace, self._remote, self._lease.job.branch, made, **self._git()):
            self._finish("push", {}, f"pushed to {self._lease.job.branch}")
        elif steps:
            self._lease = queue.begin_again(self._context.engine, self._lease)

    def check_out(self) -> None:
        if "check out" in self._lease.steps:
            return
        self._mark.unlink(missing_ok=True)
        found = workspace.check_out(self._workspace, self._remote, self._lease.job.branch, **self._git())
        mark = secrets.token_hex(8)
        self._mark.write_text(mark)
        name = self._lease.job.branch if found.follows_up else self._remote.base
        result = {"commit": found.commit, "follows_up": found.follows_up, "mark": mark}
        self._finish("check out", result, f"checked out {name} at {found.commit[:SHORT]}")

    def run(self) -> None:
        if "run" in self._lease.steps:
            return
        chosen, job = self._chosen, self._lease.job
        known, noted = f"{job.preset} {self._workspace.home_id.read_text()} ", job.session or ""
        done = runner.run(
            RunRequest(
                preset=job.preset,
                command=job.command,
                model="" if job.model == job.preset == COMMAND else job.model,
                prompt=self._lease.prompt,
                history=[_told(earlier) for earlier in self._lease.history],
                discarded=self._unkept(),
                session=noted.removeprefix(known) if noted.startswith(known) else None,
                tree=self._workspace.tree,
                home=self._workspace.home,
                limit_s=chosen.time_limit_s,
                is_stopped=self._context.is_stopped,
                on_output=self._context.on_output,
                upstream=chosen.model_base or None,
                model_key=secret_ref.resolve(chosen.model_key, self._context.environ) if chosen.model_key else None,
                sandboxed=chosen.is_sandboxed,
                read_only=tuple(map(Path, chosen.readable)),
                hidden=(self._context.folder.parent,),
            )
        )
        session = f"{known}{done.session}" if done.session else None
        self._finish("run", {"session": session}, f"{job.preset} has finished: {done.summary}")

    def _unkept(self) -> list[str]:
        """What a session may take for done: turns that failed since the last that is kept, and one begun again."""
        failed = takewhile(lambda earlier: not earlier.is_kept, reversed(self._lease.history))
        prompts = [earlier.prompt for earlier in failed][::-1]
        return [*prompts, self._lease.prompt] if self._is_again else prompts

    def commit(self) -> None:
        if "commit" in self._lease.steps:
            return
        at = datetime.fromtimestamp(self._lease.started_us // 1_000_000, UTC)  # the same at each attempt
        made = workspace.commit(self._workspace, self._lease.prompt, at, **self._git())
        self._finish("commit", {"commit": made}, f"committed {made[:SHORT]}" if made else "no file was changed")

    def push(self) -> None:
        made = self._lease.steps["commit"]["commit"] if "commit" in self._lease.steps else None
        if "push" in self._lease.steps or made is None:
            return
        branch = self._lease.job.branch
        workspace.push(self._workspace, self._remote, branch, made, **self._git())
        self._finish("push", {}, f"pushed to {branch}")

    def open_pull_request(self) -> str | None:
        """Also when nothing was changed now, but an earlier turn pushed and got no further."""
        job, steps = self._lease.job, self._lease.steps
        if "pull request" in steps:
            return str(steps["pull request"]["url"])
        if "push" not in steps and (job.pull_request or not steps["check out"]["follows_up"]):
            return None
        if self._remote.token is None:
            raise TurnFailed(
                f"the branch {job.branch} is pushed, but a pull request needs a token: name one with "
                f"`readership project agent {job.project} --git-token env:NAME`"
            )
        url = pull_request.open_pull_request(
            self._chosen.forge,
            self._chosen.api_base or None,
            job.repository,
            self._remote.token,
            Proposal(job.branch, self._remote.base, workspace.subject(self._prompts()[0]), self._body()),
            self._context.is_stopped,
        )
        self._finish("pull request", {"url": url}, f"pull request {url}")
        return url

    def _prompts(self) -> list[str]:
        return [*(earlier.prompt for earlier in self._lease.history if earlier.is_kept), self._lease.prompt]

    def _body(self) -> str:
        asked = "\n\n".join("\n".join(f"> {line}" for line in prompt.splitlines()) for prompt in self._prompts())
        return f"{asked}\n\nMade by a coding agent; Readership job {self._lease.job.id}."

    def _git(self) -> dict[str, Any]:
        return {
            "limit_s": GIT_LIMIT_S,
            "is_stopped": self._context.is_stopped,
            "on_line": lambda line: self._context.on_output(f"{line}\n".encode()),
        }

    def _finish(self, name: str, result: Mapping[str, Any], told: str) -> None:
        def note() -> Lease:
            return queue.finish_step(self._context.engine, self._lease, name, result, told, self._context.now_us())

        self._lease = retry.database_write(note, self._context.is_stopped)
