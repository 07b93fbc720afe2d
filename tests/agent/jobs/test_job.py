"""Transitions between the statuses of a job."""

import pytest

from agent.errors import AgentError, JobArchived, JobNotActive, JobNotFound, JobStillActive
from agent.jobs.job import PROMPT_BYTES_MAX, Event, Status, check_id, next_status, prompt_fault

TRANSITIONS = {
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


@pytest.mark.parametrize(("status", "event"), TRANSITIONS)
def test_event_changes_the_status(status: str, event: str) -> None:
    assert next_status(Status(status), Event(event)) == TRANSITIONS[status, event]


@pytest.mark.parametrize(("status", "event"), REFUSED)
def test_request_that_the_status_does_not_allow_is_refused(status: str, event: str) -> None:
    with pytest.raises(REFUSED[status, event]):
        next_status(Status(status), Event(event))


@pytest.mark.parametrize(("status", "event"), NEVER)
def test_turn_of_a_job_that_is_not_active_cannot_end(status: str, event: str) -> None:
    with pytest.raises(AssertionError):
        next_status(Status(status), Event(event))


def test_every_pair_of_status_and_event_is_tested() -> None:
    assert {*TRANSITIONS, *REFUSED, *NEVER} == {(str(status), str(event)) for status in Status for event in Event}


def test_prompt_has_a_maximum_size_in_bytes_and_no_nul_character() -> None:
    assert prompt_fault("é" * (PROMPT_BYTES_MAX // 2)) is None
    assert prompt_fault("é" * (PROMPT_BYTES_MAX // 2) + "x") == "has 65537 bytes; at most 65536 are accepted"
    assert prompt_fault("a\0b") == "has a NUL character"


def test_only_24_hexadecimal_digits_are_the_id_of_a_job() -> None:
    assert check_id("0123456789abcdef01234567") == "0123456789abcdef01234567"
    for text in ("", "unknown", "0123456789ABCDEF01234567", "0123456789abcdef0123456\0", "0123456789abcdef012345678"):
        with pytest.raises(JobNotFound):
            check_id(text)
