"""Agent jobs over HTTP, as a client meets them. No worker runs here: a job stays active."""

import asyncio
import json
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa
from starlette.requests import Request

from agent.jobs import configuration, journal, queue, store
from agent.jobs.configuration import Configuration
from agent.jobs.queue import Outcome
from agent.jobs.tables import TURNS
from api import settings
from api.http import problems
from tests.outage import way_to
from tests.running import Running, new_job, new_key
from tests.waiting import each_alone
from warehouse.control import database, projects

PROJECT = "jobs"
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Reading the system's certificates for each client takes longer than a request."""
NOW_US = 1_780_000_000_000_000
FIELDS = {"id", "status", "source", "model", "prLink", "createdAt", "archivedAt"}


@pytest.fixture(scope="module")
def engine(service: Running) -> Iterator[sa.Engine]:
    engine = database.connect(settings.read({}, service.data).database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def agent(service: Running, engine: sa.Engine) -> Iterator[httpx.Client]:
    """A client of a project that has a repository, and no jobs."""
    key = new_key(service.data, PROJECT)
    new_job(service.data, PROJECT)
    with engine.begin() as connection:
        connection.execute(sa.text("DELETE FROM jobs"))
    base, headers = f"{service.url}/v2/agent/{PROJECT}", {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=base, headers=headers, timeout=60) as client:
        yield client
    projects.delete(engine, PROJECT)


def create(agent: httpx.Client, prompt: str = "Mend it") -> str:
    answer = agent.post("/job", json={"prompt": prompt})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def end(engine: sa.Engine, id: str, outcome: Outcome) -> None:
    """The job's turns, as a worker would end them."""
    while (lease := queue.claim(engine, "test", NOW_US, 1)) is not None:
        queue.finish(engine, lease, outcome if lease.job.id == id else Outcome("another"), NOW_US)


def kind(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()["type"].removeprefix("/docs#")


def test_a_new_job_has_the_contracts_fields_and_a_location(agent: httpx.Client) -> None:
    answer = agent.post("/job", json={"prompt": "x"})
    made = answer.json()
    assert answer.status_code == 201
    assert set(made) == FIELDS
    assert answer.headers["location"] == f"/v2/agent/{PROJECT}/job/{made['id']}"
    assert made["status"] == "active"
    assert made["source"] == {"repository": "https://git.example/docs", "ref": "main"}
    assert (made["prLink"], made["archivedAt"]) == (None, None)
    assert agent.get(f"/job/{made['id']}").json() == made


def test_the_pull_request_is_told_once_the_job_is_not_active(agent: httpx.Client, engine: sa.Engine) -> None:
    id, url = create(agent), "https://git.example/docs/pull/1"
    end(engine, id, Outcome(None, url))
    assert [agent.get(f"/job/{id}").json()[name] for name in ("status", "prLink")] == ["completed", url]
    answer = agent.post(f"/job/{id}/message", json={"prompt": "More"})
    assert (answer.status_code, answer.json()["status"], answer.json()["prLink"]) == (200, "active", None)
    assert agent.get(f"/job/{id}").json()["prLink"] is None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ("{}", None),
        ('{"prompt": ""}', "prompt"),
        ('{"prompt": null}', "prompt"),
        ('{"prompt": 1}', "prompt"),
        ('{"prompt": "x", "model": "y"}', "model"),
        ('{"prompt": "\\u0000"}', "prompt"),
        ('{"prompt": "\\ud83d"}', None),
        ("[]", None),
        ('"x"', None),
        ("", None),
        ("{", None),
        ("NaN", None),
        ('{"prompt":' + "[" * 100_000, None),
        (json.dumps({"prompt": "x" * 65_537}), "prompt"),
    ],
)
@pytest.mark.parametrize("to", ["/job", "/job/any/message"])
def test_a_body_that_is_no_prompt_is_told_what_is_wrong(
    agent: httpx.Client, to: str, body: str, field: str | None
) -> None:
    answer = agent.post(to, content=body, headers={"Content-Type": "application/json"})
    assert kind(answer) == (400, "invalid-body")
    if field is not None:
        assert [fault["pointer"] for fault in answer.json()["errors"]] == [f"/{field}"]
    assert agent.get("/jobs").json()["jobs"] == []


def test_bad_utf8_another_type_and_a_large_body_are_refused(agent: httpx.Client) -> None:
    as_json = {"Content-Type": "application/json"}
    assert kind(agent.post("/job", content=b'{"prompt": "\xff"}', headers=as_json)) == (400, "invalid-body")
    text = {"Content-Type": "text/plain"}
    assert kind(agent.post("/job", content=b'{"prompt": "x"}', headers=text)) == (415, "unsupported-media-type")
    assert kind(agent.post("/job", content=b" " * (512 * 1024 + 1), headers=as_json)) == (413, "body-too-large")


def test_a_prompt_of_64_kib_is_taken(agent: httpx.Client) -> None:
    assert agent.post("/job", json={"prompt": "é" * 32_768}).status_code == 201


def test_an_unknown_job_is_not_found(agent: httpx.Client) -> None:
    for answer in (
        agent.get("/job/%00"),
        agent.get("/job/0123456789abcdef01234567"),
        agent.get("/job/unknown"),
        agent.get("/job/unknown/log"),
        agent.post("/job/unknown/message", json={"prompt": "x"}),
        agent.post("/job/unknown/cancel"),
        agent.post("/job/unknown/archive"),
    ):
        assert kind(answer) == (404, "not-found")


def test_a_foreign_key_and_one_that_may_only_read_are_refused(agent: httpx.Client, service: Running) -> None:
    id = create(agent)
    writes = ("/job", f"/job/{id}/message", f"/job/{id}/cancel", f"/job/{id}/archive")
    reads = ("/jobs", f"/job/{id}", f"/job/{id}/log")
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


def test_a_project_without_a_repository_is_told_what_to_do(service: Running) -> None:
    key = new_key(service.data, "bare")
    answer = httpx.post(
        f"{service.url}/v2/agent/bare/job", json={"prompt": "x"}, headers={"Authorization": f"Bearer {key}"}
    )
    assert kind(answer) == (409, "not-configured")
    assert "readership project agent bare --repository URL" in answer.json()["detail"]


def test_an_archived_job_takes_no_message(agent: httpx.Client, engine: sa.Engine) -> None:
    id = create(agent)
    assert kind(agent.post(f"/job/{id}/archive")) == (409, "job-not-idle")
    end(engine, id, Outcome(None))
    archived = agent.post(f"/job/{id}/archive").json()
    assert (archived["status"], archived["archivedAt"] > archived["createdAt"]) == ("archived", True)
    assert agent.post(f"/job/{id}/archive").json() == archived
    assert kind(agent.post(f"/job/{id}/message", json={"prompt": "x"})) == (409, "job-archived")
    assert kind(agent.post(f"/job/{id}/cancel")) == (409, "job-not-active")


def test_a_cancelled_job_has_failed_and_says_so_in_its_log(agent: httpx.Client) -> None:
    id = create(agent)
    assert agent.post(f"/job/{id}/cancel").json()["status"] == "failed"
    assert kind(agent.post(f"/job/{id}/cancel")) == (409, "job-not-active")
    assert agent.get(f"/job/{id}/log").text.endswith("turn 1 failure: the job was cancelled\n")
    assert agent.post(f"/job/{id}/message", json={"prompt": "Go on"}).json()["status"] == "active"


def test_each_success_says_what_is_left_of_the_hour(agent: httpx.Client) -> None:
    first = agent.post("/job", json={"prompt": "x"})
    assert first.headers["ratelimit-policy"] == '"create";q=100;w=3600'
    assert first.headers["ratelimit"] == '"create";r=99;t=3600'
    message = agent.post(f"/job/{first.json()['id']}/message", json={"prompt": "x"})
    assert message.headers["ratelimit-policy"] == '"message";q=100;w=3600'
    assert message.headers["ratelimit"] == '"message";r=99;t=3600'
    read = agent.get("/jobs")
    assert read.headers["ratelimit-policy"] == '"create";q=100;w=3600, "message";q=100;w=3600'
    assert read.headers["ratelimit"].startswith('"create";r=99;t=')


def test_past_the_limit_it_waits_and_is_told_how_long(agent: httpx.Client) -> None:
    id = create(agent)
    for _ in range(99):
        create(agent)
    answer = agent.post("/job", json={"prompt": "x"})
    assert kind(answer) == (429, "rate-limited")
    wait_s = int(answer.headers["retry-after"])
    assert 3500 < wait_s <= 3600
    assert answer.headers["ratelimit"] == f'"create";r=0;t={wait_s}'
    assert answer.headers["ratelimit-policy"] == '"create";q=100;w=3600'
    assert agent.post(f"/job/{id}/message", json={"prompt": "x"}).status_code == 200


def test_the_same_idempotency_key_gives_the_first_answer_again(agent: httpx.Client) -> None:
    key = {"Idempotency-Key": "one"}
    first = agent.post("/job", json={"prompt": "x"}, headers=key)
    again = agent.post("/job", json={"prompt": "x"}, headers=key)
    assert (again.status_code, again.json(), again.headers["location"]) == (
        201,
        first.json(),
        first.headers["location"],
    )
    assert len(agent.get("/jobs").json()["jobs"]) == 1
    assert kind(agent.post("/job", json={"prompt": "y"}, headers=key)) == (422, "idempotency-mismatch")
    assert kind(agent.post("/job", json={"prompt": "x"}, headers={"Idempotency-Key": "x" * 256})) == (
        400,
        "invalid-header",
    )


def test_jobs_are_listed_in_pages_and_by_state(agent: httpx.Client, engine: sa.Engine) -> None:
    made = [create(agent) for _ in range(3)]
    agent.post(f"/job/{made[0]}/cancel")
    page = agent.get("/jobs?limit=2").json()
    assert ([job["id"] for job in page["jobs"]], page["hasMore"]) == ([made[2], made[1]], True)
    page = agent.get("/jobs?limit=2&offset=2").json()
    assert ([job["id"] for job in page["jobs"]], page["hasMore"]) == ([made[0]], False)
    assert [job["id"] for job in agent.get("/jobs?status=failed").json()["jobs"]] == [made[0]]
    assert set(page["jobs"][0]) == FIELDS


@pytest.mark.parametrize("query", ["status=done", "limit=0", "limit=251", "offset=-1", "page=2", "limit=1&limit=2"])
def test_a_bad_parameter_of_the_list_is_named(agent: httpx.Client, query: str) -> None:
    answer = agent.get(f"/jobs?{query}")
    assert kind(answer) == (400, "invalid-parameter")
    assert answer.json()["errors"][0]["parameter"] == query.partition("=")[0]


def test_the_log_is_text_or_an_entry_a_line(agent: httpx.Client, engine: sa.Engine) -> None:
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
    assert [json.loads(line) for line in lines.text.splitlines()][2] == {
        "at": at,
        "turn": 1,
        "kind": "failure",
        "text": "it broke",
    }
    assert kind(agent.get(f"/job/{id}/log", headers={"Accept": "image/png"})) == (406, "not-acceptable")


def test_a_long_log_is_read_in_pages(agent: httpx.Client, engine: sa.Engine) -> None:
    id = create(agent)
    texts = [f"line {number}" for number in range(251)]
    with engine.begin() as connection:
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


def _first_turn(connection: sa.Connection, id: str) -> int:
    return int(connection.execute(sa.select(TURNS.c.id).where(TURNS.c.job_id == id)).scalar_one())


@pytest.mark.parametrize("query", ["limit=0", "limit=251", "offset=-1", "page=2", "offset=1&offset=2"])
def test_a_bad_parameter_of_the_log_is_named(agent: httpx.Client, query: str) -> None:
    answer = agent.get(f"/job/{create(agent)}/log?{query}")
    assert kind(answer) == (400, "invalid-parameter")
    assert answer.json()["errors"][0]["parameter"] == query.partition("=")[0]


def test_jobs_are_in_the_metrics(agent: httpx.Client, service: Running) -> None:
    create(agent)
    text = httpx.get(f"{service.url}/metrics").text
    assert 'readership_jobs{status="active"} 1.0' in text
    assert "readership_job_queue_age_seconds " in text


def test_a_deleted_project_leaves_no_job_and_no_folder(tmp_path: Path) -> None:
    running = Running(tmp_path / "data")
    new_key(running.data)
    id = new_job(running.data)
    folder = running.data / "jobs" / id
    folder.mkdir(parents=True)
    assert running.run("project", "delete", "site", "--yes").returncode == 0
    assert not folder.exists()
    engine = database.connect(settings.read({}, running.data).database_url)
    assert store.unarchived_ids(engine) == set()
    engine.dispose()


def test_while_the_database_is_away_a_client_is_told_to_come_back_and_nothing_is_kept(
    start: Callable[..., Running], postgresql: str
) -> None:
    with way_to(postgresql) as (way, url, past):
        service = start(READERSHIP_DATABASE_URL=url, READERSHIP_JOBS_AT_ONCE="0")
        engine = database.connect(past)
        chosen = configuration.changed(Configuration(repository="https://git.example/docs"), {"model": "a-model"})
        configuration.store(engine, "site", chosen)
        engine.dispose()
        base = f"{service.url}/v2/agent/site"
        with httpx.Client(base_url=base, headers=service.auth, timeout=60, verify=NO_TLS) as agent:
            id = create(agent)
            for _ in range(2):  # the first time, connections that were good are in use
                way.cut()
                for answer in (
                    agent.post("/job", json={"prompt": "x"}),
                    agent.post(f"/job/{id}/message", json={"prompt": "x"}),
                    agent.get(f"/job/{id}"),
                    agent.get("/jobs"),
                    agent.post(f"/job/{id}/cancel"),
                ):
                    assert kind(answer) == (503, "overloaded")
                    assert int(answer.headers["retry-after"]) > 0
                    assert answer.json()["detail"] == "the control database does not answer"
                way.restore()
                assert agent.get(f"/job/{id}").json()["status"] == "active"
            assert len(agent.get("/jobs").json()["jobs"]) == 1
            create(agent)
            message = agent.post(f"/job/{id}/message", json={"prompt": "x"})
            assert (message.status_code, message.headers["ratelimit"]) == (200, '"message";r=99;t=3600')
        assert service.stop() == 0


def test_a_database_whose_connections_are_all_in_use_is_away_too() -> None:
    engine = sa.create_engine("sqlite://", poolclass=sa.QueuePool, pool_size=1, max_overflow=0, pool_timeout=0)
    with engine.connect(), pytest.raises(sa.exc.TimeoutError) as raised:
        engine.connect()
    engine.dispose()
    request = Request({"type": "http", "state": {"request_id": "1"}})
    answer = asyncio.run(problems.answer(request, raised.value))
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")


def test_the_hundred_and_first_create_waits_whichever_worker_it_meets_also_after_a_restart(
    start: Callable[..., Running],
) -> None:
    service = start(workers=2, READERSHIP_JOBS_AT_ONCE="0")
    new_job(service.data)

    def ask() -> int:
        """Over a connection of its own."""
        url = f"{service.url}/v2/agent/site/job"
        return httpx.post(url, json={"prompt": "x"}, headers=service.auth, timeout=60, verify=NO_TLS).status_code

    assert [ask() for _ in each_alone(service) for _ in range(50)] == [201] * 100
    assert [ask() for _ in each_alone(service)] == [429] * 2
    assert service.stop() == 0
    service.start()
    assert ask() == 429
