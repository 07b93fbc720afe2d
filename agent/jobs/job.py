"""An agent job and its states: the one place that knows which follows which."""

import re
from dataclasses import dataclass
from enum import StrEnum

from agent.errors import AgentError, JobArchived, JobNotActive, JobStillActive

PROMPT_BYTES_MAX = 64 * 1024
ID = re.compile(r"[0-9a-f]{24}")


class Status(StrEnum):
    """What a job is doing. ARCHIVED is final."""

    ACTIVE = "active"
    COMPLETED = "completed"
    FAILED = "failed"
    ARCHIVED = "archived"


class Event(StrEnum):
    """What happens to a job."""

    MESSAGE = "message"
    SUCCESS = "success"
    FAILURE = "failure"
    CANCEL = "cancel"
    ARCHIVE = "archive"


_NEXT = {
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
_REFUSED: dict[Event, tuple[type[AgentError], str]] = {
    Event.MESSAGE: (JobArchived, "the job is archived and takes no message; create another job"),
    Event.CANCEL: (JobNotActive, "the job is not active: there is nothing to cancel"),
    Event.ARCHIVE: (JobStillActive, "the job is active: cancel it, or wait until it has ended"),
}


def after(status: Status, event: Event) -> Status:
    """The state that follows.

    Raises:
        JobArchived, JobNotActive, JobStillActive: a caller asked for what this state does not allow.
    """
    if (status, event) in _NEXT:
        return _NEXT[status, event]
    assert event in _REFUSED, f"{event} of a job that is {status}"
    error, told = _REFUSED[event]
    raise error(told)


@dataclass(frozen=True, slots=True)
class Job:
    """A prompt, its follow-ups and what became of them. Times are microseconds since 1970.

    `repository` and `ref` are where the work starts. `preset` is the coding agent, with its argv in `command` where the
    preset is `command`. `reason` tells why it failed, `session` is the coding agent's own.
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
        """The branch that all of its turns push to."""
        return f"readership/{self.id}"
