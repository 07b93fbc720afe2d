"""JSON of a job in the API and in webhook messages."""

from dataclasses import replace

import msgspec
import pytest

from agent.jobs import job_json
from agent.jobs.job import Job, Status

URL = "https://git.example/pull/1"
CREATED_US = 1_780_000_000_123_999
JOB = Job(
    id="0123456789abcdef01234567",
    project="site",
    status=Status.COMPLETED,
    repository="https://git.example/docs",
    ref="main",
    preset="command",
    command=("sh", "-c", "secret-tool"),
    model="a-model",
    pull_request=URL,
    created_us=CREATED_US,
    archived_us=None,
    reason=None,
    session="a session",
)


def test_job_has_the_fields_of_the_contract_in_their_order() -> None:
    assert msgspec.json.encode(job_json.from_job(JOB)).decode() == (
        '{"id":"0123456789abcdef01234567","status":"completed",'
        '"source":{"repository":"https://git.example/docs","ref":"main"},"model":"a-model",'
        f'"prLink":"{URL}","createdAt":"2026-05-28T20:26:40.123Z","archivedAt":null,"failureReason":null}}'
    )


@pytest.mark.parametrize("status", Status)
def test_only_an_active_job_hides_its_pull_request_and_the_failure_of_its_last_prompt(status: Status) -> None:
    job = job_json.from_job(replace(JOB, status=status, reason="no space", archived_us=1_000_000))
    expected = (None, None) if status is Status.ACTIVE else (URL, "no space")
    assert (job.pr_link, job.failure_reason) == expected
    assert job.archived_at == "1970-01-01T00:00:01.000Z"
