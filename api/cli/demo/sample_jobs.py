"""Sample agent jobs, in final states: no coding agent runs for them, and their prompts begin with SAMPLE."""

from typing import get_args

import msgspec

from agent.jobs import configuration, queue, store
from agent.jobs.configuration import Configuration
from agent.jobs.queue import Outcome
from agent.jobs.steps import CheckOutStep, Step, Steps
from api.cli.demo.sample_views import FOLDER
from warehouse.database.pool import Pool

SAMPLE = "Sample:"
JOBS = FOLDER / "jobs.json"
_CONFIGURATION = Configuration("https://git.example.com/larkspur/website", preset="opencode", model="sample-model")
_LEASE_US = 3_600_000_000
_SECOND_US, _HOUR_US = 1_000_000, 3_600_000_000
_NO_AGENT_RAN = "This is the log of a sample: no coding agent ran, and the repository does not exist.\n"


class SampleTurn(msgspec.Struct, frozen=True):
    """A turn: its prompt, the lines of its agent, finished steps with their log lines, and why the turn failed."""

    prompt: str
    output: list[str]
    steps: Steps
    texts: list[str]
    reason: str | None = None

    @property
    def finished(self) -> list[tuple[Step, str]]:
        """Return the finished steps in their order, each with its log line."""
        values = (getattr(self.steps, name) for name in self.steps.__struct_fields__)
        return list(zip((each for each in values if isinstance(each, get_args(Step))), self.texts, strict=True))


class SampleJob(msgspec.Struct, frozen=True):
    """A job that was created `hours_ago`; its turns begin an hour apart."""

    hours_ago: int
    turns: list[SampleTurn]
    is_archived: bool = False


def create(control: Pool, project: str, now_us: int) -> None:
    """Create the sample jobs of a project that has no configuration of agent jobs.

    The configuration that the sample jobs need is deleted afterwards, so that the dashboard starts no job for the
    repository of the sample, which does not exist.
    """
    configuration.store(control, project, _CONFIGURATION)
    for job in msgspec.json.decode(JOBS.read_bytes(), type=list[SampleJob]):
        _create(control, project, job, now_us)
    configuration.remove(control, project)


def _create(control: Pool, project: str, sample: SampleJob, now_us: int) -> None:
    created_us = now_us - sample.hours_ago * _HOUR_US
    id = None
    for number, turn in enumerate(sample.turns):
        at_us = created_us + number * _HOUR_US
        if id is None:
            id = store.create(control, project, turn.prompt, None, at_us).job.id
        else:
            store.message(control, project, id, turn.prompt, None, at_us)
        _perform(control, turn, at_us)
    if sample.is_archived and id is not None:
        store.archive(control, project, id, created_us + _HOUR_US)


def _perform(control: Pool, turn: SampleTurn, at_us: int) -> None:
    lease = queue.claim(control, "sample", at_us + 2 * _SECOND_US, _LEASE_US)
    assert lease is not None
    for number, (step, text) in enumerate(turn.finished, start=1):
        lease = queue.finish_step(control, lease, step, text, at_us + number * 45 * _SECOND_US)
        if isinstance(step, CheckOutStep):
            queue.renew(
                control, lease, at_us + number * 50 * _SECOND_US, _LEASE_US, _NO_AGENT_RAN + "\n".join(turn.output)
            )
    pull_request = lease.steps.pull_request
    outcome = Outcome(turn.reason, pull_request.url if pull_request else None)
    queue.finish(control, lease, outcome, at_us + 240 * _SECOND_US)
