"""Requests with a deadline return, fail, or are cancelled."""

import asyncio
import threading

import pytest

from agent.deadline import run_with_deadline
from agent.errors import TurnStopped


class Endless:
    """Request that never ends, and records its cancellation."""

    def __init__(self) -> None:
        self.started, self.was_cancelled = threading.Event(), False

    async def __call__(self) -> None:
        self.started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise


async def forty_two() -> int:
    return 42


async def refused() -> None:
    raise ConnectionRefusedError("refused")


def test_result_of_the_request_is_returned() -> None:
    assert run_with_deadline(60, forty_two) == 42


def test_error_of_the_request_is_raised() -> None:
    with pytest.raises(ConnectionRefusedError, match="refused"):
        run_with_deadline(60, refused)


def test_request_is_cancelled_at_its_deadline() -> None:
    request = Endless()
    with pytest.raises(TimeoutError):
        run_with_deadline(0.05, request)
    assert request.was_cancelled


def test_request_is_cancelled_once_the_turn_is_stopped() -> None:
    request = Endless()
    with pytest.raises(TurnStopped):
        run_with_deadline(60, request, request.started.is_set)
    assert request.was_cancelled
