"""Acts of another process between two statements of this one, on the control database."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from tests.processes.waiting import until
from tests.stores.sql import watch
from warehouse.database.pool import Pool

_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@contextmanager
def after_statement(engine: Pool, start: str, act: Callable[[], object]) -> Iterator[None]:
    """Call `act` once, after the first statement of the engine that begins with `start`."""
    acts = [act]

    def after(statement: str) -> None:
        if statement.startswith(start) and acts:
            acts.pop()()

    watch(engine, after)
    yield
    assert not acts, f"no statement begins with {start}"


def at_once(engine: Pool, start: str, first: Callable[[], object], second: Callable[[], object]) -> None:
    """Call `first`, and `second` in a thread after the first statement of `first` that begins with `start`.

    `first` continues once `second` has returned or waits for a lock. The database is on PostgreSQL.
    """
    seconds: list[Future[object]] = []

    def begin_second() -> None:
        seconds.append(pool.submit(second))
        until(lambda: seconds[0].done() or _are_waiting(engine))

    with ThreadPoolExecutor(1) as pool, after_statement(engine, start, begin_second):
        first()
        seconds[0].result()


def _are_waiting(engine: Pool) -> bool:
    """Return whether a session waits for a lock. A transaction would see the sessions of its first query only."""
    with engine.connect() as connection:
        return bool(connection.execute(_WAITING).fetchone()[0])
