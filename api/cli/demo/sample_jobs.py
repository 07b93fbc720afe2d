"""Sample agent jobs, in final states: no coding agent runs for them, and their prompts begin with SAMPLE."""

from collections.abc import Sequence
from dataclasses import dataclass

from agent.jobs import configuration, queue, store
from agent.jobs.configuration import Configuration
from agent.jobs.queue import Outcome
from agent.jobs.steps import CheckOutStep, CommitStep, PullRequestStep, PushStep, RunStep, Step
from warehouse.database.pool import Pool

SAMPLE = "Sample:"
REPOSITORY = "https://git.example.com/larkspur/website"
COMMIT = "4f2c91d07b"
_CONFIGURATION = Configuration(REPOSITORY, preset="opencode", model="sample-model")
_LEASE_US = 3_600_000_000
_SECOND_US, _HOUR_US = 1_000_000, 3_600_000_000
_NO_AGENT_RAN = "This is the log of a sample: no coding agent ran, and the repository does not exist.\n\n"


@dataclass(frozen=True, slots=True)
class SampleTurn:
    """A turn: its prompt, the output of the agent, finished steps with their log lines, and why the turn failed."""

    prompt: str
    output: str
    steps: Sequence[tuple[Step, str]]
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class SampleJob:
    """A job that was created `hours_ago`; its turns begin an hour apart."""

    hours_ago: int
    turns: Sequence[SampleTurn]
    is_archived: bool = False


_CHECK_OUT: tuple[Step, str] = (CheckOutStep(COMMIT, follows_up=False, mark=""), f"checked out main at {COMMIT}")
_PULL_REQUEST = f"{REPOSITORY}/pull/17"
_PAGES_FOR_AI = SampleTurn(
    f"{SAMPLE} Serve Markdown for the pages of /docs that AI agents read most.\n\n"
    "The pages and their readers:\n- /docs/install\n- /docs/quickstart\n- /docs/api",
    '$ grep -rn \'docs/\' site/routes.toml\nsite/routes.toml:14: "/docs/*" = "docs.html"\n'
    "Each page is built from docs/*.md. I add a route that serves the source.\n"
    "edit site/routes.toml\nedit site/build.py\n$ make check\n41 passed in 2.10s\n",
    (
        _CHECK_OUT,
        (RunStep("sample-session"), "opencode has finished: Markdown is served beside 3 pages"),
        (CommitStep("9a61e02c4d"), "committed 9a61e02c4d"),
        (PushStep(), "pushed to the branch of the job"),
        (PullRequestStep(_PULL_REQUEST), f"pull request {_PULL_REQUEST}"),
    ),
)
_FOLLOW_UP = SampleTurn(
    f"{SAMPLE} Also link the Markdown from the head of each page.",
    "edit site/templates/head.html\n$ make check\n42 passed in 2.14s\n",
    (
        (CheckOutStep("9a61e02c4d", follows_up=True, mark=""), "checked out the branch of the job at 9a61e02c4d"),
        (RunStep("sample-session"), "opencode has finished: each page links its Markdown"),
        (CommitStep("c07d55aa19"), "committed c07d55aa19"),
        (PushStep(), "pushed to the branch of the job"),
    ),
)
_FAILED = SampleTurn(
    f"{SAMPLE} Rewrite /docs/faq as questions that assistants ask.",
    "read docs/faq.md\nedit docs/faq.md\n$ make check\nFAILED tests/test_links.py::test_anchors\n",
    (_CHECK_OUT,),
    "opencode ended with exit status 1: the tests of the site fail",
)
_ARCHIVED = SampleTurn(
    f"{SAMPLE} Which pages have no description?",
    "$ grep -rL 'description:' docs\ndocs/security.md\ndocs/themes.md\n",
    (
        _CHECK_OUT,
        (RunStep("sample-session"), "opencode has finished: 2 pages have no description"),
        (CommitStep(None), "no file was changed"),
    ),
)
_JOBS = (
    SampleJob(200, (_ARCHIVED,), is_archived=True),
    SampleJob(52, (_FAILED,)),
    SampleJob(27, (_PAGES_FOR_AI, _FOLLOW_UP)),
)


def create(control: Pool, project: str, now_us: int) -> None:
    """Create the sample jobs of a project that has no configuration of agent jobs.

    The configuration that the sample jobs need is deleted afterwards, so that the dashboard starts no job for the
    repository of the sample, which does not exist.
    """
    configuration.store(control, project, _CONFIGURATION)
    for job in _JOBS:
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
    """Claim the turn, write its log, and end it."""
    lease = queue.claim(control, "sample", at_us + 2 * _SECOND_US, _LEASE_US)
    assert lease is not None
    for number, (step, text) in enumerate(turn.steps, start=1):
        lease = queue.finish_step(control, lease, step, text, at_us + number * 45 * _SECOND_US)
        if isinstance(step, CheckOutStep):
            queue.renew(control, lease, at_us + number * 50 * _SECOND_US, _LEASE_US, _NO_AGENT_RAN + turn.output)
    pull_request = lease.steps.pull_request
    outcome = Outcome(turn.reason, pull_request.url if pull_request else None)
    queue.finish(control, lease, outcome, at_us + 240 * _SECOND_US)
