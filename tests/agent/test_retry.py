"""Retries of requests to a forge and of writes to the control database, and deadlines of HTTP requests."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable

import pytest

from agent import retry
from agent.errors import ForgeUnavailable, PushRefused, TurnStopped
from warehouse.database.pool import PoolError
from warehouse.database.postgresql import ServerError


class Attempts:
    """Raises `errors` in order, then returns "done"."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.count = 0

    def __call__(self) -> str:
        self.count += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


def stopped_after(calls: int) -> Callable[[], bool]:
    """Return an `is_stopped` that returns False the first `calls` times."""
    answers = iter([False] * calls)
    return lambda: next(answers, True)


def running() -> bool:
    return False


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "PAUSES_S", (0.01, 0.01))
    monkeypatch.setattr(retry, "DATABASE_PAUSE_S", 0.01)


def test_forge_request_has_three_attempts() -> None:
    attempts = Attempts(ForgeUnavailable("first"), ForgeUnavailable("second"))
    assert retry.forge_request(attempts, running) == "done"
    assert attempts.count == 3
    attempts = Attempts(*map(ForgeUnavailable, ("first", "second", "third", "fourth")))
    with pytest.raises(ForgeUnavailable, match="third"):
        retry.forge_request(attempts, running)
    assert attempts.count == 3


@pytest.mark.parametrize("error", [ForgeUnavailable("rate limit", retry_after_s=61), PushRefused("protected branch")])
def test_forge_request_is_not_retried(error: Exception) -> None:
    attempts = Attempts(error)
    with pytest.raises(type(error)) as raised:
        retry.forge_request(attempts, running)
    assert raised.value is error
    assert attempts.count == 1


def test_pause_is_as_long_as_the_forge_asked_for() -> None:
    """Count the polls of `is_stopped` in a pause of 60 s instead of waiting for its end."""
    attempts = Attempts(ForgeUnavailable("busy", retry_after_s=60))
    with pytest.raises(TurnStopped):
        retry.forge_request(attempts, stopped_after(2))
    assert attempts.count == 1


def test_database_write_is_repeated_without_a_limit(caplog: pytest.LogCaptureFixture) -> None:
    locked = sqlite3.OperationalError("database is locked")
    locked.sqlite_errorcode = sqlite3.SQLITE_BUSY
    error = PoolError(locked)
    attempts = Attempts(*[error] * 5)
    assert retry.database_write(attempts, running) == "done"
    assert attempts.count == 6
    assert caplog.text.count("database is locked") == 5


def test_database_write_ends_with_its_turn_and_with_any_other_error() -> None:
    lost = PoolError(ServerError("server closed the connection", None, is_lost=True))
    for error, is_stopped, raised in ((lost, True, TurnStopped), (ValueError("not of a database"), False, ValueError)):
        attempts = Attempts(error, error)
        with pytest.raises(raised):
            retry.database_write(attempts, lambda is_stopped=is_stopped: is_stopped)
        assert attempts.count == 1


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


def test_result_or_error_of_the_request_is_that_of_the_call() -> None:
    async def forty_two() -> int:
        return 42

    async def refused() -> None:
        raise ConnectionRefusedError("refused")

    assert retry.run_with_deadline(60, forty_two) == 42
    with pytest.raises(ConnectionRefusedError, match="refused"):
        retry.run_with_deadline(60, refused)


def test_request_is_cancelled_at_its_deadline_or_once_the_turn_is_stopped() -> None:
    late, stopped = Endless(), Endless()
    with pytest.raises(TimeoutError):
        retry.run_with_deadline(0.05, late)
    with pytest.raises(TurnStopped):
        retry.run_with_deadline(60, stopped, stopped.started.is_set)
    assert late.was_cancelled
    assert stopped.was_cancelled
