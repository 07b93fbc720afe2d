"""Which state of a job follows which."""

import pytest

from agent.errors import AgentError, JobArchived, JobNotActive, JobStillActive
from agent.jobs.job import Event, Status, after

FOLLOWS = {
    ("active", "message"): "active",
    ("active", "success"): "completed",
    ("active", "failure"): "failed",
    ("active", "cancel"): "failed",
    ("completed", "message"): "active",
    ("failed", "message"): "active",
    ("completed", "archive"): "archived",
    ("failed", "archive"): "archived",
    ("archived", "archive"): "archived",
}
REFUSED: dict[tuple[str, str], type[AgentError]] = {
    ("active", "archive"): JobStillActive,
    ("completed", "cancel"): JobNotActive,
    ("failed", "cancel"): JobNotActive,
    ("archived", "cancel"): JobNotActive,
    ("archived", "message"): JobArchived,
}
NEVER = [(status, event) for status in ("completed", "failed", "archived") for event in ("success", "failure")]


@pytest.mark.parametrize(("status", "event"), FOLLOWS)
def test_a_state_follows(status: str, event: str) -> None:
    assert after(Status(status), Event(event)) == FOLLOWS[status, event]


@pytest.mark.parametrize(("status", "event"), REFUSED)
def test_what_a_state_does_not_allow_is_refused(status: str, event: str) -> None:
    with pytest.raises(REFUSED[status, event]):
        after(Status(status), Event(event))


@pytest.mark.parametrize(("status", "event"), NEVER)
def test_only_an_active_job_has_a_turn_that_ends(status: str, event: str) -> None:
    with pytest.raises(AssertionError):
        after(Status(status), Event(event))


def test_every_state_and_event_is_in_a_table_above() -> None:
    assert {*FOLLOWS, *REFUSED, *NEVER} == {(str(status), str(event)) for status in Status for event in Event}
