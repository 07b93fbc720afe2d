"""Requests that Schemathesis makes up from the description: the service answers as the description says."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
import schemathesis
import sqlalchemy as sa
from hypothesis import assume
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from agent.jobs import tables
from agent.jobs.job import Status
from api import settings
from api.reference.openapi import description
from tests.running import Running, new_job, new_key
from warehouse.control import database, projects

PROJECT = "fuzzed"
URL_BYTES_MAX = 60_000
"""A longer URL, like a header with a control character, is no HTTP to the server, and never comes to the app."""
CONTROL_CHARACTERS = "".join(map(chr, [*range(32), 127]))
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.unsupported_method,
    checks.allow_header_conformance,
]

Case = schemathesis.Case[Any]
Seen = dict[str, Counter[int]]
NUMBERS = itertools.count()


def schema(makes_up_keys: bool) -> Any:
    made_up = {
        "deterministic": True,
        "max-examples": 50,
        "with-security-parameters": makes_up_keys,
        "exclude-header-characters": CONTROL_CHARACTERS,
    }
    refused = {"expected-statuses": [400, 401, 403, 404, 405, 406, 413, 415]}
    config = {"generation": made_up, "checks": {"negative_data_rejection": refused}}
    return schemathesis.openapi.from_dict(description(), config=schemathesis.Config.from_dict(config))


@schemathesis.serializer("application/x-ndjson")
def ndjson(context: schemathesis.SerializationContext, value: Any) -> bytes:
    """To Schemathesis NDJSON is a string, which may be none."""
    return str(value).encode(errors="replace")


@pytest.fixture(scope="module")
def key(service: Running) -> str:
    return new_key(service.data, PROJECT)


@pytest.fixture(scope="module")
def engine(service: Running) -> Iterator[sa.Engine]:
    engine = database.connect(settings.read({}, service.data).database_url)
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def job(key: str, service: Running) -> str:
    """The job that all requests about one are about."""
    return new_job(service.data, PROJECT)


@pytest.fixture(scope="module")
def seen() -> Iterator[Seen]:
    """The answers by operation. Each that was tried has also succeeded, so that there was something to check."""
    seen: Seen = defaultdict(Counter)
    yield seen
    for operation, statuses in seen.items():
        success = range(300, 400) if operation == "GET /" else range(200, 300)
        assert any(status in success for status in statuses), (operation, statuses)


@schema(makes_up_keys=False).parametrize()  # type: ignore[untyped-decorator]  # ships no types for it
def test_with_a_key_every_answer_is_as_described_and_wrong_data_is_refused(
    case: Case, service: Running, key: str, job: str, engine: sa.Engine, seen: Seen
) -> None:
    status = {"cancel": Status.ACTIVE, "archive": Status.FAILED, "message": Status.COMPLETED}.get(
        case.operation.path.rpartition("/")[2]
    )
    if status is not None:
        with engine.begin() as connection:
            connection.execute(tables.JOBS.update().values(status=status))
    if "id" in case.path_parameters:
        case.path_parameters["id"] = job
    answer = call(case, service, {"Authorization": f"Bearer {key}"})
    seen[case.operation.label][answer.status_code] += 1
    rejects = [] if is_rejected_in_part(answer) else [checks.negative_data_rejection]
    case.validate_response(answer, checks=[*CHECKS, *rejects])


@schema(makes_up_keys=True).parametrize()  # type: ignore[untyped-decorator]  # the same
def test_without_a_key_every_answer_is_as_described(case: Case, service: Running, key: str) -> None:
    case.validate_response(call(case, service, {}), checks=CHECKS)


def call(case: Case, service: Running, headers: dict[str, str]) -> schemathesis.Response:
    """Send it, to a project that is there if its id could be one, and with an Idempotency-Key of its own."""
    assume(len(urlencode(case.query)) < URL_BYTES_MAX)
    if projects.ID.fullmatch(str(case.path_parameters.get("projectId", ""))):
        case.path_parameters["projectId"] = PROJECT
    if given := case.headers.get("Idempotency-Key"):
        case.headers["Idempotency-Key"] = f"{next(NUMBERS)} {given}"
    return case.call(base_url=service.url, headers=headers)


def is_rejected_in_part(answer: schemathesis.Response) -> bool:
    """Whether a post was taken without those of its hits that are not as described."""
    return answer.status_code == 202 and bool(answer.json()["rejected"])
