"""Allow-list of the requests to the model server."""

import pytest

from agent.sandbox import gateway
from agent.sandbox.gateway import ModelCalls

ALLOWED = ("GET /models", "POST /chat")


@pytest.mark.parametrize("target", ["/chat", "/chat?beta=true", "/chat?/../files"])
def test_allowed_request_may_have_any_query(target: str) -> None:
    assert ModelCalls(ALLOWED, 9).refusal("POST", target) is None


@pytest.mark.parametrize(
    "target",
    [
        *(
            "/", "", "*", "chat", "/chat/", "//chat", "/Chat", "/chat/..", "/chat/../files", "/./chat", "/ch%61t",
            "/chat%3f",
        ),
        *("/chat#x", "/chat;x", "/files?/chat", "http://other/chat", "/chat\\", "/%2e%2e/chat", "/chat\0"),
    ],
)  # fmt: skip
def test_other_spelling_of_a_path_is_refused(target: str) -> None:
    assert ModelCalls(ALLOWED, 9).refusal("POST", target) is not None


@pytest.mark.parametrize("method", ["DELETE", "GET", "post", "POST /chat\nPOST"])
def test_other_method_is_refused(method: str) -> None:
    assert ModelCalls(ALLOWED, 9).refusal(method, "/chat") is not None


def test_different_refusals_are_logged_once_and_up_to_a_limit() -> None:
    lines: list[str] = []
    calls = ModelCalls(ALLOWED, 9, lines.append)
    reasons = [calls.refusal("DELETE", f"/files/{n % 30}") for n in range(60)]
    assert lines == reasons[: gateway.REFUSALS_LOGGED_MAX]
    assert lines[1] == "the gateway refused DELETE /files/1: the agent may only send GET /models, POST /chat"
    assert calls.fault() is None


def test_log_of_a_refusal_is_short_and_printable() -> None:
    reason = ModelCalls(ALLOWED, 9).refusal("POST", "/\x1b[31m\xe9" + "x" * 1000) or ""
    assert reason.startswith("the gateway refused POST /\\x1b[31m\\xe9x")
    assert (reason.count("x"), reason.isprintable()) == (95, True)


def test_requests_over_the_limit_are_refused() -> None:
    calls = ModelCalls(ALLOWED, 2)
    answers = [calls.refusal("POST", "/chat") for _ in range(3)]
    assert answers == [None, None, "it sent more than 2 requests to the model server in one turn"]
