"""Requests that Schemathesis generates from the OpenAPI document: the responses match it."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
import schemathesis
from hypothesis import assume
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.pytest._test_builder import build_operation_test
from schemathesis.specs.openapi import checks

from agent.jobs.job import Status
from api import settings
from api.app import OPERATIONS
from api.reference.openapi import description
from tests.processes.running import Running, new_job, new_key
from tests.rounds import SEED, rounds
from tests.stores import sql
from warehouse.control import database, goals, projects
from warehouse.database.pool import Pool

pytestmark = pytest.mark.long

PROJECT = "fuzzed"
URL_BYTES_MAX = 60_000
"""Maximum length of a URL. The server rejects a longer one, like a header with a control character, before the app."""
CONTROL_CHARACTERS = "".join(map(chr, [*range(32), 127]))
CHECKS = [
    not_a_server_error, checks.status_code_conformance, checks.content_type_conformance,
    checks.response_headers_conformance, checks.response_schema_conformance, checks.unsupported_method,
    checks.allow_header_conformance,
]  # fmt: skip

Case = schemathesis.Case[Any]
Seen = dict[str, Counter[int]]
NUMBERS = itertools.count()
EACH_OPERATION = pytest.mark.parametrize("label", [f"{each.method} {each.path}" for each in OPERATIONS])


def schema(generates_keys: bool) -> Any:
    generation = {
        "deterministic": not SEED,
        "max-examples": rounds(20),
        "with-security-parameters": generates_keys,
        "exclude-header-characters": CONTROL_CHARACTERS,
    }
    rejection = {"expected-statuses": [400, 401, 403, 404, 405, 406, 413, 415]}
    config = {
        "generation": generation,
        "checks": {"negative_data_rejection": rejection},
        # Hundreds of requests to an operation: each limit of each field, which is the same without a key.
        "phases": {"coverage": {"enabled": not generates_keys or rounds(12) == 12}},
    }
    return schemathesis.openapi.from_dict(description(OPERATIONS), config=schemathesis.Config.from_dict(config))


@schemathesis.serializer("application/x-ndjson")
def ndjson(context: schemathesis.SerializationContext, value: Any) -> bytes:
    """Return the bytes of NDJSON, which is a string or None in Schemathesis."""
    return str(value).encode(errors="replace")


@pytest.fixture(scope="module")
def key(service: Running) -> str:
    return new_key(service.data, PROJECT)


@pytest.fixture(scope="module")
def engine(service: Running) -> Iterator[Pool]:
    engine = database.connect(settings.read({}, service.data).database_url)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def job(key: str, service: Running) -> str:
    """Return the id of the job in the paths."""
    return new_job(service.data, PROJECT)


@pytest.fixture(scope="module")
def seen() -> Iterator[Seen]:
    """Count the responses by operation and status, and assert that each operation has succeeded at least once."""
    seen: Seen = defaultdict(Counter)
    yield seen
    for operation, statuses in seen.items():
        success = range(300, 400) if operation == "GET /" else range(200, 300)
        assert any(status in success for status in statuses), (operation, statuses)


def run(document: Any, label: str, check: Callable[[Case], None]) -> None:
    """Call `check` with the generated requests of an operation.

    Schemathesis would generate one test for each operation when tests are collected. That takes 10 s in each process of
    pytest-xdist, and since pytest 9 all of these tests have one id, of which pytest-xdist runs one.
    """
    load_all_checks()
    (operation,) = [result.ok() for result in document.get_all_operations() if result.ok().label == label]
    test = build_operation_test(
        config=document.config, operation=operation, test_func=check, given_kwargs={}, feedback=FeedbackSources()
    )
    test()


@EACH_OPERATION
def test_with_a_key_each_response_matches_the_document_and_invalid_data_is_rejected(
    label: str, service: Running, key: str, job: str, engine: Pool, seen: Seen
) -> None:
    def check(case: Case) -> None:
        respond_with_a_key(case, service, key, job, engine, seen)

    run(schema(generates_keys=False), label, check)


def respond_with_a_key(case: Case, service: Running, key: str, job: str, engine: Pool, seen: Seen) -> None:
    status = {"cancel": Status.ACTIVE, "archive": Status.FAILED, "message": Status.COMPLETED}.get(
        case.operation.path.rpartition("/")[2]
    )
    if status is not None:
        sql.run(engine, "UPDATE jobs SET status = :status", status=status.value)
    if "id" in case.path_parameters:
        name = f"goal {next(NUMBERS)}"
        is_goal = "/goals/" in case.operation.path
        case.path_parameters["id"] = goals.add(engine, PROJECT, name, "path", "/").id if is_goal else job
    response = call(case, service, {"Authorization": f"Bearer {key}"})
    seen[case.operation.label][response.status_code] += 1
    rejects = [] if is_partly_rejected(response) else [checks.negative_data_rejection]
    case.validate_response(response, checks=[*CHECKS, *rejects])


@EACH_OPERATION
def test_without_a_key_each_response_matches_the_document(label: str, service: Running, key: str) -> None:
    def check(case: Case) -> None:
        case.validate_response(call(case, service, {}), checks=CHECKS)

    run(schema(generates_keys=True), label, check)


def call(case: Case, service: Running, headers: dict[str, str]) -> schemathesis.Response:
    """Send the request, to the project of the test if the id is valid, and with a unique Idempotency-Key."""
    assume(len(urlencode(case.query)) < URL_BYTES_MAX)
    if projects.ID.fullmatch(str(case.path_parameters.get("projectId", ""))):
        case.path_parameters["projectId"] = PROJECT
    if key_header := case.headers.get("Idempotency-Key"):
        case.headers["Idempotency-Key"] = f"{next(NUMBERS)} {key_header}"
    return case.call(base_url=service.url, headers=headers)


def is_partly_rejected(response: schemathesis.Response) -> bool:
    """Return whether a post was accepted without its invalid hits."""
    return response.status_code == 202 and bool(response.json()["rejected"])
