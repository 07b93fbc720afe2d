"""A job and its turns in the words of the pages."""

from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

from agent.jobs import store
from agent.jobs.job import Job, Status
from agent.jobs.journal import EntryKind, Summary, Turn
from api.dashboard.web.forms import sentence

PROMPT_CHARACTERS = 2_000
"""Maximum length of a prompt on the page of a job; the page of the turn has all of it."""
OUTPUT_CHARACTERS = 8_000
"""Maximum length of an output on the page of a job, which is its end."""
ENTRIES = 20
"""Maximum number of a turn's last entries on the page of a job."""
STATES = {"": "All", "active": "Active", "completed": "Completed", "failed": "Failed", "archived": "Archived"}
"""Statuses of jobs as the pages show them."""
_TURN_STATES = {"queued": "Waiting", "running": "Working", "done": "Done", "failed": "Failed", "cancelled": "Cancelled"}
_TONES = {"Completed": "good", "Done": "good", "Failed": "bad", "Working": "warn", "Waiting": "warn"}


@dataclass(frozen=True, slots=True)
class StateTag:
    """State of a job or turn: its name and the class of its tag."""

    name: str

    @property
    def tone(self) -> str:
        return _TONES.get(self.name, "")


@dataclass(frozen=True, slots=True)
class PullRequest:
    """Pull request of a job. `url` is None if a page must not link to it."""

    label: str
    url: str | None


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as a row of the list, or as the head of its page."""

    id: str
    title: str
    state: StateTag
    is_active: bool
    is_archived: bool
    pull_request: PullRequest | None
    repository: str
    ref: str
    agent: str
    created: datetime
    worked_s: float | None
    turns: int
    reason: str | None


@dataclass(frozen=True, slots=True)
class EntryView:
    """An entry of a log."""

    at: datetime
    kind: EntryKind
    text: str


@dataclass(frozen=True, slots=True)
class TurnView:
    """A turn with the ends of its long parts. `is_shortened`: the page of the turn has more."""

    number: int
    state: StateTag
    created: datetime
    worked_s: float | None
    prompt: str
    is_shortened: bool
    entries: list[EntryView]


def job_view(job: Job, summaries: dict[str, Summary]) -> JobView:
    """Return the view of a job. A job that was removed in between has no summary."""
    summary = summaries.get(job.id, Summary("", 0, is_running=False, worked_us=0))
    return JobView(
        id=job.id,
        title=summary.first_line or job.id,
        state=_state(job, summary),
        is_active=job.status is Status.ACTIVE,
        is_archived=job.status is Status.ARCHIVED,
        pull_request=None if job.pull_request is None else pull_request(job.pull_request),
        repository=job.repository,
        ref=job.ref,
        agent=job.preset if job.model == job.preset else f"{job.preset}, {job.model}",
        created=moment(job.created_us),
        worked_s=summary.worked_us / 1_000_000 or None,
        turns=summary.turns,
        reason=sentence(job.reason) if job.status is Status.FAILED and job.reason else None,
    )


def turn_view(turn: Turn, now: datetime, *, is_whole: bool = False) -> TurnView:
    """Return the view of a turn: the beginning of its prompt, and the ends of its log and output, or all of them."""
    prompt = turn.prompt if is_whole else turn.prompt[:PROMPT_CHARACTERS]
    entries = turn.entries if is_whole else turn.entries[-ENTRIES:]
    shown = [EntryView(moment(each.at_us), each.kind, each.text if is_whole else _end(each.text)) for each in entries]
    is_shortened = prompt != turn.prompt or [each.text for each in shown] != [each.text for each in turn.entries]
    ended = now if turn.ended_us is None else moment(turn.ended_us)
    worked_s = None if turn.started_us is None else (ended - moment(turn.started_us)).total_seconds()
    state = StateTag(_TURN_STATES[turn.state])
    return TurnView(turn.number, state, moment(turn.created_us), worked_s, prompt, is_shortened, shown)


def pull_request(url: str) -> PullRequest:
    """Return a pull request by its URL, which the forge chose. Only http and https are linked."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return PullRequest(url, None)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return PullRequest(url, None)
    number = parts.path.rstrip("/").rpartition("/")[2]
    return PullRequest(f"Pull request {number}" if number.isdecimal() else url, url)


def moment(us: int) -> datetime:
    """Return the time of microseconds since 1970."""
    return datetime.fromtimestamp(us / 1_000_000, UTC)


def _state(job: Job, summary: Summary) -> StateTag:
    if job.status is Status.ACTIVE:
        return StateTag("Working" if summary.is_running else "Waiting")
    if job.status is Status.FAILED and job.reason == store.CANCELLED:
        return StateTag("Cancelled")
    return StateTag(STATES[job.status])


def _end(text: str) -> str:
    """Return the end of a long text, from the start of a line if possible."""
    if len(text) <= OUTPUT_CHARACTERS:
        return text
    end = text[-OUTPUT_CHARACTERS:]
    return f"[...]\n{end.partition(chr(10))[2] or end}"
