"""A post is answered when it is on disk, an event id counts once, and a fault of the disk fails only its own posts."""

import asyncio
import resource
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ingest.errors import IdempotencyMismatch, Overloaded
from ingest.hits.body import Rejection
from ingest.hits.hit import Hit
from ingest.hits.row import row
from ingest.hotlog.deduplication import Post, Receipt
from ingest.hotlog.writer import CHECKED_ROWS, LOOK_EVERY_S, MAY_BE_STORED, WAITING_ROWS_MAX, HotLog, store
from tests.processes.waiting import until
from tests.stores.postgresql import new_database
from warehouse.errors import ProjectNotFound
from warehouse.hotlog import batches, refusals
from warehouse.hotlog.connection import HotLogPlace, server_of
from warehouse.schema import Row

NOW_US = 1_789_473_600_000_000
PAGE_BYTES = 4096
WITHIN_S = 30
"""Deadline in seconds for an answer; a test that reaches it has failed."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "hot.sqlite"


def page_view(path: str = "/a", event_id: str | None = None, project: str = "site") -> Row:
    return row(project, Hit(path, NOW_US, "", None, {}, None, None, event_id), "server", NOW_US)


def post(*rows: Row, **more: Any) -> Post:
    project = str(rows[0][0]) if rows else "site"
    return Post(project, rows, more.pop("rejected", []), **more)


def keyed(key: str, body: bytes, *rows: Row, **more: Any) -> Post:
    return post(*rows, idempotency_key=key, fingerprint=body, **more)


def accepted(rows: int, duplicates: int = 0) -> Receipt:
    return Receipt(rows, duplicates, [])


def on_a_loop(file: HotLogPlace, body: Callable[[HotLog], Awaitable[Any]], backlog_rows_max: int = 1_000_000) -> Any:
    """Run `body` with a writer on a new event loop."""

    async def run() -> Any:
        log = HotLog(file, backlog_rows_max)
        try:
            return await asyncio.wait_for(body(log), WITHIN_S)
        finally:
            log.close()

    return asyncio.run(run())


def posted(file: HotLogPlace, *posts: Post) -> list[Receipt]:
    """Return the receipts of posts that are sent at the same time."""

    async def body(log: HotLog) -> list[Receipt]:
        return await asyncio.gather(*map(log.post, posts))

    receipts: list[Receipt] = on_a_loop(file, body)
    return receipts


def stored(file: HotLogPlace) -> list[tuple[str, str | None]]:
    """Return the path and the event id of each row in the file, in order."""
    with closing(batches.connect(file)) as connection:
        rows = [each for batch in batches.above(connection, 0) for each in batch.rows.to_pylist()]
    return [(each["path"], each["event_id"]) for each in rows]


def batch_ids(file: HotLogPlace) -> list[int]:
    with closing(batches.connect(file)) as connection:
        return [batch.id for batch in batches.above(connection, 0)]


@contextmanager
def changing(file: Path) -> Iterator[sqlite3.Connection]:
    """Yield another connection, which changes the file."""
    with closing(sqlite3.connect(file, timeout=WITHIN_S, isolation_level=None)) as connection:
        yield connection


# Deleted projects


@pytest.mark.parametrize("event_id", [None, "a"], ids=["plain", "with event ids"])
def test_post_of_a_project_deleted_meanwhile_stores_nothing(hot_log: HotLogPlace, event_id: str | None) -> None:
    gone = keyed("key", b"1", page_view("/gone", event_id), internal_id="gone")
    plain = post(page_view("/gone", event_id), internal_id="gone")
    new = post(page_view("/new", event_id), internal_id="new")

    async def body(log: HotLog) -> list[Receipt | BaseException]:
        await log.post(plain if event_id is None else post(page_view("/gone", "b"), internal_id="gone"))
        with closing(batches.connect(hot_log)) as connection:
            refusals.add(connection, "gone")
        sent = (plain, new) if event_id is None else (gone, plain, new)
        return await asyncio.gather(*map(log.post, sent), return_exceptions=True)

    *refused, receipt = on_a_loop(hot_log, body)
    assert [type(each) for each in refused] == [ProjectNotFound] * len(refused)
    assert receipt == accepted(1)
    assert [path for path, _ in stored(hot_log)] == ["/gone", "/new"], "the first was stored before the deletion"
    again = keyed("key", b"2", page_view("/new"), internal_id="new")
    assert posted(hot_log, again) == [accepted(1)], "the answer of the refused post is not remembered"
    with pytest.raises(ProjectNotFound):  # by a writer that begins later
        posted(hot_log, plain)


def test_post_of_a_deleted_project_that_has_only_known_event_ids_is_refused(hot_log: HotLogPlace) -> None:
    known = page_view("/gone", "known")

    async def body(log: HotLog) -> list[Receipt | BaseException]:
        await log.post(post(known, internal_id="gone"))
        with closing(batches.connect(hot_log)) as connection:
            for _ in range(2):  # a refusal may be repeated
                refusals.add(connection, "gone")
            assert refusals.internal_ids(connection) == {"gone"}
            assert (refusals.has(connection, "gone"), refusals.has(connection, "")) == (True, False)
        return await asyncio.gather(log.post(keyed("key", b"1", known, internal_id="gone")), return_exceptions=True)

    assert [type(each) for each in on_a_loop(hot_log, body)] == [ProjectNotFound]


# Answers


def test_each_of_many_simultaneous_posts_is_answered_and_stored_once(hot_log: HotLogPlace) -> None:
    posts = [post(*(page_view(f"/{number}/{i}") for i in range(number % 4 + 1))) for number in range(400)]
    assert posted(hot_log, *posts) == [accepted(len(each.rows)) for each in posts]
    assert stored(hot_log) == [(each[2], None) for sent in posts for each in sent.rows]


def test_simultaneous_posts_share_a_commit(file: Path) -> None:
    posted(file, *(post(page_view()) for _ in range(400)))
    assert len(batch_ids(file)) == 1


def test_post_is_on_disk_when_it_is_answered(file: Path) -> None:
    async def body(log: HotLog) -> None:
        for number in range(20):
            assert await log.post(post(page_view(f"/{number}"))) == accepted(1)
            assert len(stored(file)) == number + 1

    on_a_loop(file, body)


def test_senders_that_post_again_after_each_answer_are_all_answered(file: Path) -> None:
    async def sender(log: HotLog, name: int) -> None:
        for number in range(20):
            assert await log.post(post(page_view(f"/{name}/{number}"))) == accepted(1)

    async def body(log: HotLog) -> None:
        await asyncio.gather(*(sender(log, name) for name in range(20)))

    on_a_loop(file, body)
    assert sorted(stored(file)) == sorted((f"/{name}/{number}", None) for name in range(20) for number in range(20))


def test_receipt_has_the_rejections(file: Path) -> None:
    rejected = [Rejection(1, "path", "must not be empty")]
    assert posted(file, post(page_view(), rejected=rejected)) == [Receipt(1, 0, rejected)]


def test_close_stores_and_answers_the_waiting_posts(hot_log: HotLogPlace) -> None:
    async def body() -> list[Receipt]:
        log = HotLog(hot_log, 1_000)
        answered = await log.post(post(page_view("/before")))
        waiting = [log.post(post(page_view(f"/{number}"))) for number in range(50)]
        log.close()
        return [answered, *await asyncio.wait_for(asyncio.gather(*waiting), WITHIN_S)]

    assert asyncio.run(body()) == [accepted(1)] * 51
    assert stored(hot_log) == [("/before", None), *((f"/{number}", None) for number in range(50))]


def test_cancelled_post_does_not_delay_the_others(file: Path) -> None:
    async def body(log: HotLog) -> Receipt:
        gone = log.post(post(page_view("/gone")))
        gone.cancel()
        return await log.post(post(page_view("/here")))

    assert on_a_loop(file, body) == accepted(1)
    assert stored(file) == [("/gone", None), ("/here", None)]


def test_batch_ids_rise_across_deletions_and_reopening(hot_log: HotLogPlace) -> None:
    for _ in range(3):
        posted(hot_log, post(page_view()))
        with closing(batches.connect(hot_log)) as connection:
            batches.delete_through(connection, batches.last_id(connection))
    posted(hot_log, post(page_view()))
    assert batch_ids(hot_log) == [4]


def test_rows_without_a_post_are_stored_with_the_others(file: Path) -> None:
    posted(file, post(page_view("/posted")))
    with closing(batches.connect(file)) as connection:
        store(connection, [page_view("/imported"), page_view("/imported")], 0)
    assert stored(file) == [("/posted", None), ("/imported", None), ("/imported", None)]


def test_stored_columns_are_those_of_the_post(file: Path) -> None:
    user_agent, parameters = "GPTBot/1.3 \U0001f4a9", {"utm_source": "news"}
    hit = Hit("/\xe9", NOW_US + 1, user_agent, "https://example.org/", parameters, "markdown", 304, "event")
    posted(file, post(row("site", hit, "server", NOW_US)))
    with closing(batches.connect(file)) as connection:
        read = next(batches.above(connection, 0)).rows.to_pylist()[0]
    stored_row = {
        name: read[name] for name in ("project_id", "path", "user_agent", "referrer", "status", "event_id", "agent")
    }
    assert stored_row == {
        "project_id": "site",
        "path": "/\xe9",
        "user_agent": "GPTBot/1.3 \U0001f4a9",
        "referrer": "https://example.org/",
        "status": 304,
        "event_id": "event",
        "agent": "GPTBot",
    }
    assert read["ts"] == datetime(2026, 9, 15, 12, 0, 0, 1, tzinfo=UTC)


# Event ids


def sent_twice(hot_log: HotLogPlace, *posts: Post) -> list[Receipt]:
    """Return the receipts of posts that are sent to two writers at once, two of each post."""

    async def run() -> list[Receipt]:
        logs = [HotLog(hot_log, 1_000_000) for _ in range(2)]
        sent = (until_accepted(log, each) for each in posts for log in logs)  # a busy machine may refuse one at first
        try:
            return await asyncio.wait_for(asyncio.gather(*sent), WITHIN_S)
        finally:
            for log in logs:
                log.close()

    return asyncio.run(run())


def test_event_id_sent_to_two_writers_at_once_counts_once(hot_log: HotLogPlace) -> None:
    receipts = sent_twice(hot_log, *(post(page_view(event_id=f"{number}")) for number in range(200)))
    for one, other in zip(receipts[::2], receipts[1::2], strict=True):
        assert (one.accepted + other.accepted, one.duplicates + other.duplicates) == (1, 1)
    assert sorted(event_id or "" for _, event_id in stored(hot_log)) == sorted(map(str, range(200)))


def test_key_sent_to_two_writers_at_once_is_stored_once(hot_log: HotLogPlace) -> None:
    posts = [keyed(f"{number}", b"body", page_view()) for number in range(50)]
    assert sent_twice(hot_log, *posts) == [accepted(1)] * 100
    assert len(stored(hot_log)) == 50


def test_text_of_event_ids_is_not_stored(file: Path) -> None:
    posted(file, post(page_view(event_id="ana@example.com")))
    with changing(file) as connection:
        connection.execute("DELETE FROM batches")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("VACUUM")
    assert b"ana@example.com" not in file.read_bytes()


# Idempotency-Key


def test_repeated_key_with_another_body_is_refused_and_other_posts_are_stored(hot_log: HotLogPlace) -> None:
    posted(hot_log, keyed("key", b"body", page_view("/first")))

    async def body(log: HotLog) -> list[Any]:
        sent = [keyed("key", b"other body", page_view("/other", "e")), post(page_view("/beside"))]
        return await asyncio.gather(*map(log.post, sent), return_exceptions=True)

    refused, beside = on_a_loop(hot_log, body)
    assert isinstance(refused, IdempotencyMismatch)
    assert beside == accepted(1)
    assert posted(hot_log, post(page_view("/later", "e"))) == [accepted(1)]
    assert stored(hot_log) == [("/first", None), ("/beside", None), ("/later", "e")]


# Overload


def test_post_beyond_the_backlog_is_refused_and_stores_nothing(file: Path) -> None:
    async def body(log: HotLog) -> None:
        fits = log.post(post(*[page_view("/fits", f"{number}") for number in range(8)]))
        with pytest.raises(Overloaded) as raised:
            log.post(keyed("key", b"body", page_view("/too much", "e"), page_view("/too much"), page_view("/too much")))
        assert raised.value.retry_after_s > 0
        assert await log.post(post(page_view("/fits"), page_view("/fits"))) == accepted(2)
        assert await fits == accepted(8)

    on_a_loop(file, body, backlog_rows_max=10)
    assert [path for path, _ in stored(file)] == ["/fits"] * 10
    assert posted(file, keyed("key", b"other body", page_view("/later", "e"))) == [accepted(1)]


@pytest.mark.long
def test_row_counts_once_in_the_backlog_until_it_is_loaded_also_in_another_process(file: Path) -> None:
    async def fill(log: HotLog) -> list[Receipt]:
        return [await log.post(post(*[page_view()] * 6)), await log.post(post(*[page_view()] * 4))]

    async def load(log: HotLog) -> Receipt:
        with pytest.raises(Overloaded):
            log.post(post(page_view()))
        with closing(batches.connect(file)) as connection:
            batches.delete_through(connection, batches.last_id(connection))
        return await until_accepted(log, post(page_view()))

    assert on_a_loop(file, fill, backlog_rows_max=10) == [accepted(6), accepted(4)]
    assert on_a_loop(file, load, backlog_rows_max=10) == accepted(1)
    assert len(stored(file)) == 1


async def until_accepted(log: HotLog, sent: Post) -> Receipt:
    async with asyncio.timeout(WITHIN_S):
        while True:
            try:
                return await log.post(sent)
            except Overloaded:
                await asyncio.sleep(0)


def test_posts_that_arrive_faster_than_they_are_stored_are_refused(file: Path) -> None:
    many = post(*[page_view()] * (WAITING_ROWS_MAX // 2 + 1))

    async def body(log: HotLog) -> list[Receipt]:
        waiting = [log.post(many), log.post(many)]
        with pytest.raises(Overloaded, match="faster than the disk"):
            log.post(post(page_view()))
        receipts = await asyncio.gather(*waiting)
        return [*receipts, await log.post(post(page_view()))]

    assert on_a_loop(file, body) == [accepted(len(many.rows)), accepted(len(many.rows)), accepted(1)]


# Faults


async def fails(log: HotLog, sent: Post) -> Exception:
    with pytest.raises(Exception) as raised:  # noqa: PT011  # the caller checks the type
        await log.post(sent)
    assert isinstance(raised.value, Exception)
    return raised.value


@contextmanager
def table_gone(file: Path) -> Iterator[None]:
    with changing(file) as connection:
        connection.execute("ALTER TABLE batches RENAME TO hidden")
        try:
            yield
        finally:
            connection.execute("ALTER TABLE hidden RENAME TO batches")


@contextmanager
def disk_full(file: Path) -> Iterator[None]:
    """Limit the files of this process to the present size of the hot log's WAL."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file.with_name(file.name + "-wal").stat().st_size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_posts_are_refused_while_the_waiting_hits_take_a_gigabyte(file: Path) -> None:
    posted(file, post(page_view()))
    with changing(file) as connection:
        connection.execute("UPDATE batches SET bytes = 1 << 30")

    async def body(log: HotLog) -> None:
        with pytest.raises(Overloaded, match="too many hits wait"):
            await log.post(post(page_view()))

    on_a_loop(file, body)
    with changing(file) as connection:
        connection.execute("UPDATE batches SET bytes = (1 << 30) - 1")
    assert posted(file, post(page_view())) == [accepted(1)]


def test_disk_whose_free_space_cannot_be_read_refuses_posts_for_a_retry(file: Path) -> None:
    rows = [page_view() for _ in range(CHECKED_ROWS)]

    async def body(log: HotLog) -> None:
        file.parent.rename(file.parent.with_name("elsewhere"))
        with pytest.raises(Overloaded, match=r"^the hot log cannot be written: No such file or directory$"):
            await log.post(post(*rows))
        assert log.fault == "No such file or directory"
        file.parent.with_name("elsewhere").rename(file.parent)
        assert await log.post(post(*rows)) == accepted(CHECKED_ROWS)
        assert log.fault is None

    on_a_loop(file, body)


large = "/" + "a" * 2_000


@contextmanager
def overwritten(file: Path) -> Iterator[None]:
    """Overwrite all pages of the file except the first."""
    with changing(file) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = file.read_bytes()
    with file.open("r+b") as pages:
        pages.seek(PAGE_BYTES)
        pages.write(b"\xa5" * (len(whole) - PAGE_BYTES))
    try:
        yield
    finally:
        with file.open("r+b") as pages:
            pages.write(whole)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (table_gone, "does not fit this version of the program: see the log (SQLITE_ERROR)"),
        (disk_full, "its disk cannot be read or written: see the log (SQLITE_IOERR_WRITE)"),
    ],
)
@pytest.mark.parametrize("sent", [post(*[page_view(large)] * 99), post(*[page_view(large, "e"), page_view()] * 99)])
def test_fault_of_the_disk_fails_its_posts_with_the_reason_and_stores_nothing(
    file: Path, fault: Callable[[Path], Any], reason: str, sent: Post
) -> None:
    async def body(log: HotLog) -> None:
        await log.post(post(page_view("/before")))
        with fault(file):
            faults = await asyncio.gather(fails(log, sent), fails(log, sent))
            assert [type(each) for each in faults] == [Overloaded, Overloaded]
            assert all(reason in str(each) for each in faults), faults
            assert reason in str(log.fault)
        assert await log.post(post(page_view("/after", "e"))) == accepted(1)
        assert log.fault is None

    on_a_loop(file, body)
    assert stored(file) == [("/before", None), ("/after", "e")]


@pytest.mark.parametrize("sent", [post(page_view()), post(page_view(event_id="e"))])
def test_damaged_file_is_a_fault_with_the_reason(file: Path, sent: Post) -> None:
    async def body(log: HotLog) -> None:
        await log.post(post(page_view("/before")))
        with overwritten(file):
            fault = await fails(log, sent)
        assert isinstance(fault, Overloaded)
        assert str(fault) == f"the hot log cannot be written: {log.fault}"
        assert log.fault == "damaged, read-only or not accessible: see the log (SQLITE_CORRUPT)"

    on_a_loop(file, body)
    assert posted(file, post(page_view("/after", "e"))) == [accepted(1)]
    assert stored(file) == [("/before", None), ("/after", "e")]


@pytest.mark.long
def test_post_is_answered_after_an_unexpected_error_of_the_writer(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Check that a damaged value, which is a ValueError in the writer's thread, does not end the thread."""

    async def body(log: HotLog) -> Receipt:
        await log.post(post(page_view()))
        with changing(file) as connection:
            connection.execute("UPDATE batches SET committed_s = 'damaged'")
        await asyncio.to_thread(until, lambda: "the backlog of the hot log cannot be read" in caplog.messages)
        return await asyncio.wait_for(log.post(post(page_view())), 30)

    assert on_a_loop(file, body) == accepted(1)


def test_fault_is_logged_once_at_its_start_and_once_at_its_end(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def body(log: HotLog) -> None:
        await log.post(post(page_view("/before")))
        with disk_full(file):
            for _ in range(3):
                await fails(log, post(*[page_view(large)] * 99))
        await log.post(post(page_view("/after")))

    on_a_loop(file, body)
    assert caplog.messages == [
        "the hot log cannot be written, posts are answered 503: disk I/O error",
        "the hot log can be written again",
    ]


@pytest.mark.long
def test_writer_survives_a_long_fault(file: Path) -> None:
    async def body(log: HotLog) -> Receipt:
        until_s = time.monotonic() + 1.5 * LOOK_EVERY_S
        with table_gone(file):
            for _ in count():
                assert isinstance(await fails(log, post(page_view("/lost"))), Overloaded)
                if time.monotonic() > until_s:
                    break
        return await log.post(post(page_view("/after")))

    assert on_a_loop(file, body) == accepted(1)
    assert stored(file) == [("/after", None)]


def test_row_that_cannot_be_stored_fails_its_post_and_not_the_next_one(hot_log: HotLogPlace) -> None:
    broken: Row = ("site", "no time", *page_view()[2:])

    async def body(log: HotLog) -> Receipt:
        assert not isinstance(await fails(log, post(broken)), Overloaded)
        assert not isinstance(await fails(log, post((*broken[:-2], "e", NOW_US))), Overloaded)
        return await log.post(post(page_view(event_id="e")))

    assert on_a_loop(hot_log, body) == accepted(1)
    assert stored(hot_log) == [("/a", "e")]


@pytest.mark.parametrize("event_id", [None, "e"], ids=["plain", "with an event id"])
def test_message_of_a_refused_post_shows_whether_its_hits_may_be_stored(postgresql: str, event_id: str | None) -> None:
    server = server_of(new_database(postgresql))
    assert server is not None
    at_commit = "CREATE CONSTRAINT TRIGGER t AFTER INSERT ON batches DEFERRABLE INITIALLY DEFERRED"
    before_commit = "CREATE TRIGGER t AFTER INSERT ON batches"
    with closing(batches.connect(server)) as hot:
        hot.execute(
            "CREATE FUNCTION end_session() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$"
        )

    async def body(log: HotLog) -> str:
        return str(await fails(log, post(page_view(event_id=event_id))))

    # A plain post is sent together with its COMMIT, which may have run after any loss of the connection.
    for trigger, may_be_stored in ((at_commit, True), (before_commit, event_id is None)):
        with closing(batches.connect(server)) as hot:
            hot.execute("DROP TRIGGER IF EXISTS t ON batches")
            hot.execute(f"{trigger} FOR EACH ROW EXECUTE FUNCTION end_session()")
        message = on_a_loop(server, body)
        assert message.startswith("the hot log cannot be written: does not answer")
        assert message.endswith(MAY_BE_STORED) is may_be_stored
