"""Agent jobs over HTTP. No worker runs here: a job stays active."""

import json
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from agent.jobs import configuration, journal, queue, store
from agent.jobs.configuration import Configuration
from agent.jobs.queue import Outcome
from api import settings
from tests.processes.running import Running, new_job, new_key
from tests.stores import sql
from tests.stores.outage import way_to
from warehouse.control import database, projects
from warehouse.database.pool import Pool
from warehouse.database.statements import Connection

PROJECT = "jobs"
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""TLS context without certificates: to read the system's certificates takes longer than a request."""
NOW_US = 1_780_000_000_000_000
FIELDS = {"id", "status", "source", "model", "prLink", "createdAt", "archivedAt", "failureReason"}

AS_JSON = {"Content-Type": "application/json"}
CURSORS = ("cursor=", "cursor=x", "cursor=%00", "cursor=MQ", "cursor=LTEgeA", "cursor=é", f"cursor={'M' * 500}")
"""Texts that are no cursors."""


@pytest.fixture(scope="module")
def engine(service: Running) -> Iterator[Pool]:
    engine = database.connect(settings.read({}, service.data).database_url)
    yield engine
    engine.close()


@pytest.fixture
def agent(service: Running, engine: Pool) -> Iterator[httpx.Client]:
    """Return a client of a project with a repository and without jobs."""
    key = new_key(service.data, PROJECT)
    new_job(service.data, PROJECT)
    with engine.transaction() as connection:
        connection.execute("DELETE FROM jobs")
    base, headers = f"{service.url}/v2/agent/{PROJECT}", {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=base, headers=headers, timeout=60) as client:
        yield client
    projects.delete(engine, PROJECT)


def create(agent: httpx.Client, prompt: str = "Fix it") -> str:
    response = agent.post("/job", json={"prompt": prompt})
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


def end(engine: Pool, id: str, outcome: Outcome) -> None:
    """Finish all queued turns, that of the job with this outcome."""
    while (lease := queue.claim(engine, "test", NOW_US, 1)) is not None:
        queue.finish(engine, lease, outcome if lease.job.id == id else Outcome("another"), NOW_US)


def kind(response: httpx.Response) -> tuple[int, str]:
    assert response.headers["content-type"] == "application/problem+json"
    return response.status_code, response.json()["type"].removeprefix("/docs#")


def test_new_job_has_the_fields_of_the_contract_and_a_location(agent: httpx.Client) -> None:
    response = agent.post("/job", json={"prompt": "x"})
    job = response.json()
    assert response.status_code == 201
    assert set(job) == FIELDS
    assert response.headers["location"] == f"/v2/agent/{PROJECT}/job/{job['id']}"
    assert job["status"] == "active"
    assert job["source"] == {"repository": "https://git.example/docs", "ref": "main"}
    assert (job["prLink"], job["archivedAt"], job["failureReason"]) == (None, None, None)
    assert agent.get(f"/job/{job['id']}").json() == job


def test_pull_request_is_in_the_job_unless_the_job_is_active(agent: httpx.Client, engine: Pool) -> None:
    id, url = create(agent), "https://git.example/docs/pull/1"
    end(engine, id, Outcome(None, url))
    assert [agent.get(f"/job/{id}").json()[name] for name in ("status", "prLink")] == ["completed", url]
    response = agent.post(f"/job/{id}/message", json={"prompt": "More"})
    assert (response.status_code, response.json()["status"], response.json()["prLink"]) == (200, "active", None)
    assert agent.get(f"/job/{id}").json()["prLink"] is None


def test_invalid_prompt_is_rejected_with_its_field(agent: httpx.Client) -> None:
    for body, field in {
        "{}": None,
        '{"prompt": ""}': "prompt",
        '{"prompt": null}': "prompt",
        '{"prompt": 1}': "prompt",
        '{"prompt": "x", "model": "y"}': "model",
        '{"prompt": "\\u0000"}': "prompt",
        '{"prompt": "\\ud83d"}': None,
        "[]": None,
        '"x"': None,
        "": None,
        "{": None,
        "NaN": None,
        '{"prompt":' + "[" * 100_000: None,
        json.dumps({"prompt": "x" * 65_537}): "prompt",
    }.items():
        for to in ("/job", "/job/any/message"):
            response = agent.post(to, content=body, headers=AS_JSON)
            assert kind(response) == (400, "invalid-body"), body[:100]
            if field is not None:
                assert [fault["pointer"] for fault in response.json()["errors"]] == [f"/{field}"]
    assert agent.get("/jobs").json()["jobs"] == []


def test_invalid_utf8_another_media_type_and_a_large_body_are_rejected(agent: httpx.Client) -> None:
    assert kind(agent.post("/job", content=b'{"prompt": "\xff"}', headers=AS_JSON)) == (400, "invalid-body")
    text = {"Content-Type": "text/plain"}
    assert kind(agent.post("/job", content=b'{"prompt": "x"}', headers=text)) == (415, "unsupported-media-type")
    assert kind(agent.post("/job", content=b" " * (512 * 1024 + 1), headers=AS_JSON)) == (413, "body-too-large")
    assert agent.post("/job", json={"prompt": "é" * 32_768}).status_code == 201, "64 KiB"


def test_unknown_job_is_not_found(agent: httpx.Client) -> None:
    for path in ("%00", "0123456789abcdef01234567", "unknown", "unknown/log", "unknown/prompts"):
        assert kind(agent.get(f"/job/{path}")) == (404, "not-found"), path
    for action in ("message", "cancel", "archive"):
        assert kind(agent.post(f"/job/unknown/{action}", json={"prompt": "x"})) == (404, "not-found"), action


def test_key_of_another_project_and_a_read_key_are_rejected(agent: httpx.Client, service: Running) -> None:
    id = create(agent)
    writes = ("/job", f"/job/{id}/message", f"/job/{id}/cancel", f"/job/{id}/archive")
    reads = ("/jobs", f"/job/{id}", f"/job/{id}/log", f"/job/{id}/prompts")
    foreign = {"Authorization": f"Bearer {new_key(service.data, 'other')}"}
    reader = {"Authorization": f"Bearer {new_key(service.data, PROJECT, 'read')}"}
    for path in writes:
        assert kind(agent.post(path, json={"prompt": "x"}, headers=foreign)) == (403, "forbidden")
        assert kind(agent.post(path, json={"prompt": "x"}, headers=reader)) == (403, "forbidden")
        assert kind(agent.post(path, json={"prompt": "x"}, headers={"Authorization": ""})) == (401, "unauthenticated")
    for path in reads:
        assert kind(agent.get(path, headers=foreign)) == (403, "forbidden")
        assert kind(agent.get(path, headers={"Authorization": "Bearer x"})) == (401, "unauthenticated")
        assert agent.get(path, headers=reader).status_code == 200


def test_detail_has_the_command_that_sets_the_repository(service: Running) -> None:
    key = new_key(service.data, "bare")
    response = httpx.post(
        f"{service.url}/v2/agent/bare/job", json={"prompt": "x"}, headers={"Authorization": f"Bearer {key}"}
    )
    assert kind(response) == (409, "not-configured")
    assert "readership project agent bare --repository URL" in response.json()["detail"]


def test_archived_job_accepts_no_message(agent: httpx.Client, engine: Pool) -> None:
    id = create(agent)
    assert kind(agent.post(f"/job/{id}/archive")) == (409, "job-not-idle")
    end(engine, id, Outcome(None))
    archived = agent.post(f"/job/{id}/archive").json()
    assert (archived["status"], archived["archivedAt"] > archived["createdAt"]) == ("archived", True)
    assert agent.post(f"/job/{id}/archive").json() == archived
    assert kind(agent.post(f"/job/{id}/message", json={"prompt": "x"})) == (409, "job-archived")
    assert kind(agent.post(f"/job/{id}/cancel")) == (409, "job-not-active")


def test_cancelled_job_names_the_cancellation_and_not_a_failure(agent: httpx.Client) -> None:
    id = create(agent)
    cancelled = agent.post(f"/job/{id}/cancel").json()
    assert (cancelled["status"], cancelled["failureReason"]) == ("failed", "the job was cancelled")
    assert kind(agent.post(f"/job/{id}/cancel")) == (409, "job-not-active")
    assert agent.get(f"/job/{id}/log").text.endswith("turn 1 turn: the job was cancelled\n")
    assert [each["status"] for each in agent.get(f"/job/{id}/prompts").json()["prompts"]] == ["cancelled"]
    assert agent.post(f"/job/{id}/message", json={"prompt": "Go on"}).json()["status"] == "active"


def test_each_success_has_the_rest_of_the_quota(agent: httpx.Client) -> None:
    first = agent.post("/job", json={"prompt": "x"})
    assert first.headers["ratelimit-policy"] == '"create";q=100;w=3600'
    assert first.headers["ratelimit"] == '"create";r=99;t=3600'
    message = agent.post(f"/job/{first.json()['id']}/message", json={"prompt": "x"})
    assert message.headers["ratelimit-policy"] == '"message";q=100;w=3600'
    assert message.headers["ratelimit"] == '"message";r=99;t=3600'
    read = agent.get("/jobs")
    assert read.headers["ratelimit-policy"] == '"create";q=100;w=3600, "message";q=100;w=3600'
    assert read.headers["ratelimit"].startswith('"create";r=99;t=')


def test_exhausted_quota_is_a_429_with_a_delay(agent: httpx.Client) -> None:
    ids = [create(agent) for _ in range(100)]
    response = agent.post("/job", json={"prompt": "x"})
    assert kind(response) == (429, "rate-limited")
    wait_s = int(response.headers["retry-after"])
    assert 3500 < wait_s <= 3600
    assert response.headers["ratelimit"] == f'"create";r=0;t={wait_s}'
    assert response.headers["ratelimit-policy"] == '"create";q=100;w=3600'
    assert agent.post(f"/job/{ids[0]}/message", json={"prompt": "x"}).status_code == 200


def test_reason_of_a_failure_is_in_the_job_until_the_next_prompt(agent: httpx.Client, engine: Pool) -> None:
    id = create(agent)
    end(engine, id, Outcome("it broke"))
    assert agent.get(f"/job/{id}").json()["failureReason"] == "it broke"
    assert agent.get("/jobs").json()["jobs"][0]["failureReason"] == "it broke"
    assert agent.post(f"/job/{id}/message", json={"prompt": "Again"}).json()["failureReason"] is None
    end(engine, id, Outcome(None))
    assert agent.get(f"/job/{id}").json()["failureReason"] is None


def test_prompts_are_listed_with_their_times(agent: httpx.Client, engine: Pool) -> None:
    id = create(agent, "One")
    end(engine, id, Outcome(None))
    agent.post(f"/job/{id}/message", json={"prompt": "Two\n"})
    page = agent.get(f"/job/{id}/prompts").json()
    assert [(each["prompt"], each["status"]) for each in page["prompts"]] == [("One", "completed"), ("Two\n", "queued")]
    first, second = page["prompts"]
    at = "2026-05-28T20:26:40.000Z"
    assert (first["startedAt"], first["endedAt"], second["startedAt"], second["endedAt"]) == (at, at, None, None)
    assert first["createdAt"] == agent.get(f"/job/{id}").json()["createdAt"]
    for offset, prompt, has_more in ((0, "One", True), (1, "Two\n", False)):
        page = agent.get(f"/job/{id}/prompts?limit=1&offset={offset}").json()
        assert ([each["prompt"] for each in page["prompts"]], page["hasMore"]) == ([prompt], has_more)
    assert kind(agent.get(f"/job/{id}/prompts?limit=51")) == (400, "invalid-parameter")


def test_jobs_are_listed_in_pages_and_by_status(agent: httpx.Client, engine: Pool) -> None:
    ids = [create(agent) for _ in range(3)]
    agent.post(f"/job/{ids[0]}/cancel")
    page = agent.get("/jobs?limit=2").json()
    assert ([job["id"] for job in page["jobs"]], page["hasMore"]) == ([ids[2], ids[1]], True)
    create(agent)
    page = agent.get("/jobs", params={"limit": 2, "cursor": page["nextCursor"]}).json()
    assert ([job["id"] for job in page["jobs"]], page["hasMore"], page["nextCursor"]) == ([ids[0]], False, None)
    assert [job["id"] for job in agent.get("/jobs?status=failed").json()["jobs"]] == [ids[0]]
    assert set(page["jobs"][0]) == FIELDS


def test_invalid_parameter_of_the_list_is_a_fault(agent: httpx.Client) -> None:
    for query in ("status=done", "limit=0", "limit=251", "offset=1", "limit=1&limit=2", *CURSORS):
        response = agent.get(f"/jobs?{query}")
        assert kind(response) == (400, "invalid-parameter"), query
        assert response.json()["errors"][0]["parameter"] == query.partition("=")[0]


def test_log_is_text_or_one_entry_per_line(agent: httpx.Client, engine: Pool) -> None:
    id = create(agent)
    lease = queue.claim(engine, "test", NOW_US, 1_000_000)
    assert lease is not None
    queue.renew(engine, lease, NOW_US, 1_000_000, "one\ntwo\n")
    queue.finish(engine, lease, Outcome("it broke"), NOW_US)
    text = agent.get(f"/job/{id}/log")
    at = "2026-05-28T20:26:40.000Z"
    assert text.headers["content-type"] == "text/plain; charset=utf-8"
    assert text.text == f"{at} turn 1 turn: begins\n  | one\n  | two\n{at} turn 1 failure: it broke\n"
    lines = agent.get(f"/job/{id}/log", headers={"Accept": "application/x-ndjson"})
    assert lines.headers["content-type"] == "application/x-ndjson"
    failure = {"at": at, "turn": 1, "kind": "failure", "text": "it broke"}
    assert [json.loads(line) for line in lines.text.splitlines()][2] == failure
    assert kind(agent.get(f"/job/{id}/log", headers={"Accept": "image/png"})) == (406, "not-acceptable")


def test_long_log_has_pages(agent: httpx.Client, engine: Pool) -> None:
    id = create(agent)
    texts = [f"line {number}" for number in range(251)]
    with engine.transaction() as connection:
        for text in texts:
            journal.append(connection, id, _first_turn(connection, id), "step", text, NOW_US)
    first = agent.get(f"/job/{id}/log", headers={"Accept": "application/json"})
    assert [entry["text"] for entry in first.json()["entries"]] == texts[:250]
    assert (first.json()["hasMore"], first.headers["link"]) == (True, '<?limit=250&offset=250>; rel="next"')
    last = agent.get(first.url.join(first.links["next"]["url"]), headers={"Accept": "application/json"})
    assert [entry["text"] for entry in last.json()["entries"]] == texts[250:]
    assert (last.json()["hasMore"], "link" in last.headers) == (False, False)
    lines = agent.get(f"/job/{id}/log?limit=2&offset=248", headers={"Accept": "application/x-ndjson"})
    assert [json.loads(line)["text"] for line in lines.text.splitlines()] == texts[248:250]
    assert lines.headers["link"] == '<?limit=2&offset=250>; rel="next"'
    assert agent.get(f"/job/{id}/log?limit=1").text.splitlines()[1:] == ["more entries: ?limit=1&offset=1"]


def _first_turn(connection: Connection, id: str) -> int:
    return int(sql.execute(connection, "SELECT id FROM turns WHERE job_id = :id", id=id).fetchone()[0])


def test_jobs_are_in_the_metrics(agent: httpx.Client, service: Running) -> None:
    create(agent)
    text = httpx.get(f"{service.url}/metrics").text
    assert 'readership_jobs{status="active"} 1.0' in text
    assert "readership_job_queue_age_seconds " in text


@pytest.mark.long
def test_deleted_project_leaves_no_job_and_no_folder(tmp_path: Path) -> None:
    running = Running(tmp_path / "data")
    new_key(running.data)
    id = new_job(running.data)
    folder = running.data / "jobs" / id
    folder.mkdir(parents=True)
    assert running.run("project", "delete", "site", "--yes").returncode == 0
    assert not folder.exists()
    engine = database.connect(settings.read({}, running.data).database_url)
    assert store.unarchived_ids(engine) == set()
    engine.close()


@pytest.mark.long
def test_unavailable_database_is_a_503_and_nothing_is_stored(start: Callable[..., Running], postgresql: str) -> None:
    with way_to(postgresql) as (way, url, past):
        service = start(READERSHIP_DATABASE_URL=url, READERSHIP_JOBS_AT_ONCE="0")
        engine = database.connect(past)
        chosen = configuration.changed(Configuration(repository="https://git.example/docs"), {"model": "a-model"})
        configuration.store(engine, "site", chosen)
        engine.close()
        base = f"{service.url}/v2/agent/site"
        with httpx.Client(base_url=base, headers=service.auth, timeout=60, verify=NO_TLS) as agent:
            id = create(agent)
            for _ in range(2):  # in the first round the pool has connections that worked before
                way.cut()
                for response in (
                    agent.post("/job", json={"prompt": "x"}),
                    agent.post(f"/job/{id}/message", json={"prompt": "x"}),
                    agent.get(f"/job/{id}"),
                    agent.get("/jobs"),
                    agent.post(f"/job/{id}/cancel"),
                ):
                    assert kind(response) == (503, "overloaded")
                    assert int(response.headers["retry-after"]) > 0
                    assert response.json()["detail"] == "the control database does not answer"
                way.restore()
                assert agent.get(f"/job/{id}").json()["status"] == "active"
            assert len(agent.get("/jobs").json()["jobs"]) == 1
            create(agent)
            message = agent.post(f"/job/{id}/message", json={"prompt": "x"})
            assert (message.status_code, message.headers["ratelimit"]) == (200, '"message";r=99;t=3600')
        assert service.stop() == 0
