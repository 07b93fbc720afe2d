"""Query parameters in the OpenAPI document, by the fields of a struct."""

from typing import Annotated

import msgspec

from api.http.operation import Parameter, field_parameters, paging


class Query(msgspec.Struct):
    path: Annotated[Annotated[str, msgspec.Meta(max_length=9)] | None, msgspec.Meta(description="A path.")] = None
    limit: Annotated[int, msgspec.Meta(description="A number.", ge=1)] = 5


def test_optional_field_is_a_parameter_with_null_as_one_of_its_types() -> None:
    assert field_parameters(Query, path="/a") == (
        Parameter("path", "A path.", {"maxLength": 9}, example="/a"),
        Parameter("limit", "A number.", {"minimum": 1, "default": 5}),
    )


def test_limits_of_a_page_are_those_that_are_passed() -> None:
    limit, offset = paging("Rows", limit_max=10, limit=2, maximum=7)
    assert limit.schema == {"type": "integer", "minimum": 1, "maximum": 10, "default": 2}
    assert offset.schema == {"type": "integer", "minimum": 0, "default": 0, "maximum": 7}
