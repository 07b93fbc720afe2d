"""The OpenAPI document is valid, consistent, and describes this app."""

import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from api.app import OPERATIONS as RECORDS
from api.http.problems import KINDS, MEDIA_TYPE
from api.reference.openapi import description
from tests.api.reference import contract

DOCUMENT = description(RECORDS)
OPERATIONS = {
    f"{method.upper()} {path}": operation
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}


def test_document_is_valid_openapi_3_1() -> None:
    assert [error.message for error in OPENAPI_31_VALIDATOR.iter_errors(DOCUMENT)] == []


def test_each_reference_has_a_target() -> None:
    for reference in references(DOCUMENT):
        _, section, name = reference.removeprefix("#/").split("/")
        assert name in DOCUMENT["components"][section]


def test_each_operation_has_a_unique_id_a_summary_and_a_description() -> None:
    ids = [operation["operationId"] for operation in OPERATIONS.values()]
    assert len(set(ids)) == len(ids)
    assert all(operation["summary"] and operation["description"] for operation in OPERATIONS.values())


def test_each_kind_of_problem_is_a_response_of_an_operation() -> None:
    responses = [response for operation in OPERATIONS.values() for response in operation["responses"].values()]
    problems = [each["content"][MEDIA_TYPE]["schema"] for each in responses if MEDIA_TYPE in each.get("content", {})]
    kinds = {uri.removeprefix("/docs#") for problem in problems for uri in problem["properties"]["type"]["enum"]}
    assert kinds == set(KINDS) - {"method-not-allowed", "head-too-large"}, "responses to requests of no operation"


@pytest.mark.parametrize("name", OPERATIONS)
def test_examples_match_their_schemas(name: str) -> None:
    operation = OPERATIONS[name]
    bodies = [operation["requestBody"]] if "requestBody" in operation else []
    for body in [*bodies, *operation["responses"].values()]:
        for media in body.get("content", {}).values():
            schema = jsonschema_rs.Draft202012Validator(media["schema"] | {"components": DOCUMENT["components"]})
            for example in examples(media):
                assert [error.message for error in schema.iter_errors(example)] == []


@pytest.mark.parametrize(
    ("hit", "is_valid"),
    [
        ({"path": "/a"}, True),
        ({"url": "https://example.com/a", "path": None}, True),
        ({}, False),
        ({"path": "/a", "url": "https://example.com/a"}, False),
        ({"path": "/a\n"}, False),
        ({"path": "/a", "page": 1}, False),
        ({"path": "/a", "status": 99}, False),
    ],
)
def test_schema_of_a_hit_accepts_valid_hits_only(hit: dict[str, Any], is_valid: bool) -> None:
    schema = {"$ref": "#/components/schemas/ServerHit", "components": DOCUMENT["components"]}
    assert jsonschema_rs.Draft202012Validator(schema).is_valid(hit) is is_valid


def examples(media: dict[str, Any]) -> list[Any]:
    many = [each["value"] for each in media.get("examples", {}).values()]
    return [media["example"]] if "example" in media else many


def references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        yield from (value for key, value in part.items() if key == "$ref")
    for each in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from references(each)


def test_no_parameter_response_or_field_of_the_contract_is_lost() -> None:
    assert list(contract.lost(json.loads(contract.FILE.read_text(encoding="utf-8")), contract.present())) == []


def test_lost_parts_of_a_contract_are_named() -> None:
    before = {"a": [1, {"b": 2, "c": 3}], "d": 4, "e": 5}
    assert list(contract.lost(before, {"f": 6, "a": [{"b": 2}, 1], "d": 7})) == ["/a/1 {'b': 2, 'c': 3}", "/d 4", "/e"]
