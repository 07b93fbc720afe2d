"""One turn of a job, in steps: check out, run the coding agent, commit, push, open the pull request.

Each finished step is stored with the results that later steps need. A worker that claims the turn after another one
continues at the first unfinished step. A worker that has lost the turn cannot store its current step, and stops there.
"""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from urllib.parse import urlsplit

from agent import retry
from agent.coding_agent import runner
from agent.coding_agent.presets import COMMAND, PRESETS
from agent.coding_agent.runner import RunRequest
from agent.errors import ProgramTerminated, TurnFailed, TurnStopped
from agent.forge import pull_request
from agent.forge.forges import Proposal
from agent.git import workspace
from agent.git.commands import StepControl
from agent.git.remote import Remote
from agent.git.workspace import Workspace
from agent.jobs import configuration, queue, secret_ref
from agent.jobs.configuration import Configuration
from agent.jobs.queue import EarlierTurn, Lease
from agent.jobs.steps import CheckOutStep, CommitStep, PullRequestStep, PushStep, RunStep, Step, Steps
from agent.worker.job_folders import IDLE_BYTES_MAX, limit_idle, locked
from warehouse.database.pool import Pool

GIT_TIMEOUT_S = 600.0
"""Deadline of a step that exchanges data with the repository's server, in seconds."""
SHORT = 10
"""Length of an abbreviated commit id, in characters."""


@dataclass(frozen=True, slots=True)
class TurnContext:
    """Resources of a worker that a turn uses. `on_output` receives what git and the coding agent print."""

    control: Pool
    folder: Path
    environ: Mapping[str, str] = field(repr=False)
    now_us: Callable[[], int]
    is_stopped: Callable[[], bool]
    on_output: Callable[[bytes], None]
    idle_bytes_max: int = IDLE_BYTES_MAX


def perform(lease: Lease, context: TurnContext) -> str | None:
    """Perform the unfinished steps of the turn; return the URL of the job's pull request, or None if it has none.

    Raises:
        TurnFailed: the turn cannot continue; the message has the reason.
        TurnStopped: `is_stopped` returned true.
        LeaseLost: the turn was cancelled, or another worker has claimed it.
    """
    with context.control.connect() as connection:
        config = configuration.load(connection, lease.job.project)
    _require_same_host(lease, config)
    _require_same_model_server(lease, config)
    if config.is_sandboxed and (exposed := configuration.exposed_secrets(config)):
        raise TurnFailed(f"the coding agent could read the file of {', '.join(exposed)}: move it out of these folders")
    folder = context.folder / lease.job.id
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(folder, context.is_stopped):
        limit_idle(context.folder, context.idle_bytes_max)
        turn = _Turn(lease, context, config, Workspace(folder), _remote(lease, config, context.environ))
        try:
            turn.restart_without_files()
            turn.check_out()
            turn.run()
            turn.commit()
            turn.push()
            url = turn.open_pull_request()
        except (TurnStopped, ProgramTerminated):  # the turn continues later with its files
            raise
        except TurnFailed:
            workspace.remove_checkout(Workspace(folder))
            raise
        workspace.remove_checkout(Workspace(folder))
        return url


def _require_same_host(lease: Lease, config: Configuration) -> None:
    """Raise TurnFailed if the project's token is for another host than that of the job's repository."""
    job, project = (urlsplit(url)[:2] for url in (lease.job.repository, config.repository))
    if job != project:
        raise TurnFailed(
            f"the project's repository is now {config.repository}, and its token is not sent to the host of this job's "
            "repository: create a new job"
        )


def _require_same_model_server(lease: Lease, config: Configuration) -> None:
    """Raise TurnFailed if the project's model key is for another model server than that of the job's coding agent."""
    if not config.model_key or config.model_base or lease.job.preset == config.preset:
        return
    job, project = (PRESETS[name].upstream if name in PRESETS else None for name in (lease.job.preset, config.preset))
    if job is not None and job != project:
        raise TurnFailed(
            f"the project's coding agent is now {config.preset}, and its model key is not sent to the model server of "
            f"{lease.job.preset}, the coding agent of this job: create a new job"
        )


def _remote(lease: Lease, config: Configuration, environ: Mapping[str, str]) -> Remote:
    token = secret_ref.resolve(config.git_token, environ) if config.git_token else None
    return Remote(lease.job.repository, lease.job.ref, token)


class _Turn:
    """Running turn. `_lease` is replaced after each finished step."""

    def __init__(
        self, lease: Lease, context: TurnContext, config: Configuration, workspace: Workspace, remote: Remote
    ) -> None:
        self._lease, self._context, self._config = lease, context, config
        self._workspace, self._remote = workspace, remote
        self._control = StepControl(
            GIT_TIMEOUT_S, context.is_stopped, lambda line: context.on_output(f"{line}\n".encode())
        )
        self._is_repeated = lease.attempt > 1 or lease.steps != Steps()

    @property
    def _commit_id(self) -> str | None:
        step = self._lease.steps.commit
        return step.commit if step else None

    def restart_without_files(self) -> None:
        """Clear the finished steps if the next step needs files that are not in the job's folder.

        The files are missing if the coding agent has not finished, or if it ran on another machine or in another
        attempt. A commit that was pushed before its worker died needs no files.
        """
        steps = self._lease.steps
        if steps.push or (steps.commit and steps.commit.commit is None):
            return
        mark = steps.check_out.mark if steps.check_out else None
        has_files = self._workspace.mark.exists() and self._workspace.mark.read_text() == mark
        if steps.run and has_files:
            return
        branch, commit_id = self._lease.job.branch, self._commit_id
        if commit_id and workspace.is_pushed(self._workspace, self._remote, branch, commit_id, self._control):
            self._finish(PushStep(), f"pushed to {branch}")
        elif steps != Steps():
            self._lease = queue.clear_steps(self._context.control, self._lease)

    def check_out(self) -> None:
        if self._lease.steps.check_out:
            return
        self._workspace.mark.unlink(missing_ok=True)
        checked_out = workspace.check_out(self._workspace, self._remote, self._lease.job.branch, self._control)
        mark = secrets.token_hex(8)
        self._workspace.mark.write_text(mark)
        name = self._lease.job.branch if checked_out.follows_up else self._remote.base
        step = CheckOutStep(checked_out.commit, checked_out.follows_up, mark)
        self._finish(step, f"checked out {name} at {checked_out.commit[:SHORT]}")

    def run(self) -> None:
        """Run the coding agent. It resumes the session of an earlier turn if the job's home folder has that session."""
        if self._lease.steps.run:
            return
        config, job = self._config, self._lease.job
        prefix = f"{job.preset} {self._workspace.home_id.read_text()} "
        stored = job.session or ""
        result = runner.run(
            RunRequest(
                preset=job.preset,
                command=job.command,
                model="" if job.model == job.preset == COMMAND else job.model,
                prompt=self._lease.prompt,
                history=[_history_text(earlier) for earlier in self._lease.history],
                discarded=self._discarded_prompts(),
                session=stored.removeprefix(prefix) if stored.startswith(prefix) else None,
                tree=self._workspace.tree,
                home=self._workspace.home,
                limit_s=config.time_limit_s,
                is_stopped=self._context.is_stopped,
                on_output=self._context.on_output,
                upstream=config.model_base or None,
                model_key=secret_ref.resolve(config.model_key, self._context.environ) if config.model_key else None,
                sandboxed=config.is_sandboxed,
                read_only=tuple(map(Path, config.readable)),
                hidden=(self._context.folder.parent,),
            )
        )
        session = f"{prefix}{result.session}" if result.session else None
        self._finish(RunStep(session), f"{job.preset} has finished: {result.summary}")

    def _discarded_prompts(self) -> list[str]:
        """Return the latest prompts that the session may know but whose changes are not in the work tree.

        These are the failed turns since the last one in the branch, and this turn if it is repeated.
        """
        failed = takewhile(lambda earlier: not earlier.is_in_branch, reversed(self._lease.history))
        prompts = [earlier.prompt for earlier in failed][::-1]
        return [*prompts, self._lease.prompt] if self._is_repeated else prompts

    def commit(self) -> None:
        if self._lease.steps.commit:
            return
        at = datetime.fromtimestamp(self._lease.started_us // 1_000_000, UTC)  # the same time in each attempt
        allow_ci = self._config.allow_ci
        prompt = self._lease.prompt if self._config.publish_prompts else ""
        commit_id = workspace.commit(self._workspace, prompt, at, self._control, allow_ci=allow_ci)
        text = f"committed {commit_id[:SHORT]}" if commit_id else "no file was changed"
        self._finish(CommitStep(commit_id), text)

    def push(self) -> None:
        commit_id = self._commit_id
        if self._lease.steps.push or commit_id is None:
            return
        branch = self._lease.job.branch
        workspace.push(self._workspace, self._remote, branch, commit_id, self._control)
        self._finish(PushStep(), f"pushed to {branch}")

    def open_pull_request(self) -> str | None:
        """Return the URL of the job's pull request; open one if anything was pushed in this or an earlier turn."""
        job, steps = self._lease.job, self._lease.steps
        if steps.pull_request:
            return steps.pull_request.url
        has_earlier_push = steps.check_out is not None and steps.check_out.follows_up
        if not steps.push and (job.pull_request or not has_earlier_push):
            return None
        if self._remote.token is None:
            raise TurnFailed(
                f"the branch {job.branch} was pushed, but a pull request needs a token: set one with "
                f"`readership project agent {job.project} --git-token env:NAME`"
            )
        url = pull_request.open_pull_request(
            self._config.forge,
            self._config.api_base or None,
            job.repository,
            self._remote.token,
            self._proposal(),
            self._context.is_stopped,
        )
        self._finish(PullRequestStep(url), f"pull request {url}")
        return url

    def _proposal(self) -> Proposal:
        """Return the pull request to open. It quotes the prompts, unless the project keeps them to itself."""
        job, prompts = self._lease.job, []
        if self._config.publish_prompts:  # those whose changes are in the branch
            prompts = [each.prompt for each in self._lease.history if each.is_in_branch] + [self._lease.prompt]
        quoted = "".join("\n".join(f"> {line}" for line in prompt.splitlines()) + "\n\n" for prompt in prompts)
        title = workspace.subject(prompts[0]) if prompts else f"Readership job {job.id}"
        body = f"{quoted}Created by a coding agent in the Readership job {job.id}."
        return Proposal(job.branch, self._remote.base, title, body)

    def _finish(self, step: Step, text: str) -> None:

        def store() -> Lease:
            return queue.finish_step(self._context.control, self._lease, step, text, self._context.now_us())

        self._lease = retry.database_write(store, self._context.is_stopped)


def _history_text(earlier: EarlierTurn) -> str:
    if earlier.is_in_branch:
        return earlier.prompt
    return f"(This request failed; none of its changes are in the work tree.)\n{earlier.prompt}"
