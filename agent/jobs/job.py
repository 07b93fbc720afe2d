"""An agent job, its statuses, and the transitions between them."""

import re
from dataclasses import dataclass
from enum import StrEnum

from agent.errors import AgentError, JobArchived, JobNotActive, JobNotFound, JobStillActive

PROMPT_BYTES_MAX = 64 * 1024
ID = re.compile(r"[0-9a-f]{24}")


def check_id(text: str) -> str:
    """Return the id of a job unchanged. Raises JobNotFound for other texts, which not every database accepts."""
    if ID.fullmatch(text) is None:
        raise JobNotFound(f"the project has no job {text[:40]!r}")
    return text


def prompt_fault(prompt: str) -> str | None:
    """Return why the text cannot be the prompt of a turn, or None if it can."""
    size = len(prompt.encode())
    if size > PROMPT_BYTES_MAX:
        return f"has {size} bytes; at most {PROMPT_BYTES_MAX} are accepted"
    if "\0" in prompt:
        return "has a NUL character"
    return None


class Status(StrEnum):
    """Status of a job. ARCHIVED is final."""

    ACTIVE = "active"
    COMPLETED = "completed"
    FAILED = "failed"
    ARCHIVED = "archived"


class Event(StrEnum):
    """Event that may change a job's status. SUCCESS and FAILURE are the two outcomes of the job's last turn."""

    MESSAGE = "message"
    SUCCESS = "success"
    FAILURE = "failure"
    CANCEL = "cancel"
    ARCHIVE = "archive"


_TRANSITIONS = {
    (Status.ACTIVE, Event.MESSAGE): Status.ACTIVE,
    (Status.COMPLETED, Event.MESSAGE): Status.ACTIVE,
    (Status.FAILED, Event.MESSAGE): Status.ACTIVE,
    (Status.ACTIVE, Event.SUCCESS): Status.COMPLETED,
    (Status.ACTIVE, Event.FAILURE): Status.FAILED,
    (Status.ACTIVE, Event.CANCEL): Status.FAILED,
    (Status.COMPLETED, Event.ARCHIVE): Status.ARCHIVED,
    (Status.FAILED, Event.ARCHIVE): Status.ARCHIVED,
    (Status.ARCHIVED, Event.ARCHIVE): Status.ARCHIVED,
}
_REFUSALS: dict[Event, tuple[type[AgentError], str]] = {
    Event.MESSAGE: (JobArchived, "the job is archived and accepts no messages; create another job"),
    Event.CANCEL: (JobNotActive, "the job is not active: there is nothing to cancel"),
    Event.ARCHIVE: (JobStillActive, "the job is active: cancel it, or wait until it has ended"),
}


def next_status(status: Status, event: Event) -> Status:
    """Return the status after an event. Raises JobArchived, JobNotActive or JobStillActive if it is not allowed."""
    if (status, event) in _TRANSITIONS:
        return _TRANSITIONS[status, event]
    assert event in _REFUSALS, f"{event} of a job that is {status}"
    error, reason = _REFUSALS[event]
    raise error(reason)


@dataclass(frozen=True, slots=True)
class Job:
    """A prompt, its follow-ups, and their outcome. Times are microseconds since 1970.

    The work starts from the branch `ref` of `repository`. `preset` is the name of the coding agent; `command` has the
    arguments of the preset `command`. `reason` is the failure reason, and `session` the coding agent's session id.
    """

    id: str
    project: str
    status: Status
    repository: str
    ref: str
    preset: str
    command: tuple[str, ...]
    model: str
    pull_request: str | None
    created_us: int
    archived_us: int | None
    reason: str | None
    session: str | None

    @property
    def branch(self) -> str:
        """Branch that every turn of the job pushes to."""
        return f"readership/{self.id}"
