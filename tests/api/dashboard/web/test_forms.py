"""Posted forms: values, faults and limits."""

import asyncio

import pytest
from starlette.requests import Request

from api.dashboard.web import forms
from api.dashboard.web.forms import Form
from api.http.body import ANONYMOUS, FREE_BYTES, KEYED
from api.http.problems import Problem
from ingest.errors import Overloaded


def read(body: bytes, bytes_max: int = forms.BODY_BYTES_MAX) -> Form:
    """Return the form of a body that arrives in two parts."""
    parts = iter([(body[:7], True), (body[7:], False)])

    async def receive() -> dict[str, object]:
        part, more = next(parts)
        return {"type": "http.request", "body": part, "more_body": more}

    return asyncio.run(forms.read(Request({"type": "http", "headers": []}, receive), bytes_max))


def test_values_are_decoded_and_trimmed() -> None:
    form = read(b"name=+Caf%C3%A9+&empty=")
    assert (form.text("name", 10), form.text("empty", 10, required=False), form.faults) == ("Café", "", {})


def test_missing_long_and_unknown_values_are_faults_of_their_fields() -> None:
    form = read(b"name=abcdef&scope=all")
    form.text("name", 5)
    form.text("title", 5)
    form.choice("scope", ("read", "write"))
    assert form.faults == {
        "name": "Use at most 5 characters, not 6.",
        "title": "Please fill in this field.",
        "scope": "Choose one of: read, write.",
    }


def test_first_fault_of_a_field_is_shown_as_a_sentence() -> None:
    form = Form()
    form.fault("name", "is taken")
    form.fault("name", "is long")
    assert form.faults == {"name": "Is taken."}


def test_unreadable_bodies_are_refused() -> None:
    for body, kind in (
        (b"name=%ff", "invalid-body"),
        (b"name=\xff", "invalid-body"),
        (b"&".join(b"f%d=1" % number for number in range(51)), "invalid-body"),
        (b"name=" + b"a" * forms.BODY_BYTES_MAX, "body-too-large"),
    ):
        with pytest.raises(Problem) as caught:
            read(body)
        assert caught.value.kind == kind


def test_page_can_accept_larger_forms() -> None:
    body = b"name=" + b"a" * forms.BODY_BYTES_MAX
    assert read(body, len(body)).values["name"] == "a" * forms.BODY_BYTES_MAX
    with pytest.raises(Problem, match="the body has more than"):
        read(body, len(body) - 1)


def test_slow_body_is_refused() -> None:
    async def receive() -> dict[str, object]:
        await asyncio.sleep(30)
        raise AssertionError

    async def use() -> None:
        with pytest.raises(Problem) as caught:
            await forms.read(Request({"type": "http", "headers": []}, receive), chunk_s=0.01)
        assert caught.value.kind == "body-too-slow"

    asyncio.run(use())


def test_forms_of_strangers_take_no_memory_of_posts_with_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    large = b"name=" + b"a" * FREE_BYTES
    monkeypatch.setattr(KEYED, "left", 0)
    assert read(large).text("name", FREE_BYTES) == "a" * FREE_BYTES
    monkeypatch.setattr(ANONYMOUS, "left", 0)
    with pytest.raises(Overloaded):
        read(large)
