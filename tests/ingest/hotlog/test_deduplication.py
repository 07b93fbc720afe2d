"""Event ids count once and an Idempotency-Key is answered once, for seven days, for each project by itself."""

from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from ingest.errors import IdempotencyMismatch
from ingest.hits.body import Rejection
from ingest.hits.hit import Hit
from ingest.hits.row import row
from ingest.hotlog import deduplication
from ingest.hotlog.deduplication import Post, Receipt
from warehouse.hotlog import batches
from warehouse.hotlog.connection import HotConnection, HotLogPlace
from warehouse.schema import Row

NOW_S = 1_789_473_600
SEVEN_DAYS_S = 604_800
REJECTED = [Rejection(1, "path", "must not be empty")]


@pytest.fixture
def hot(hot_log: HotLogPlace) -> Iterator[HotConnection]:
    with closing(batches.connect(hot_log)) as connection:
        deduplication.create(connection)
        yield connection


def view(event_id: str | None, project: str = "site", source: str = "server") -> Row:
    return row(project, Hit("/a", NOW_S * 1_000_000, "", None, {}, None, None, event_id), source, NOW_S * 1_000_000)


def post(
    *event_ids: str | None, project: str = "site", key: str | None = None, body: bytes = b"body", source: str = "server"
) -> Post:
    return Post(project, [view(each, project, source) for each in event_ids], REJECTED, key, body)


def deduplicated(hot: HotConnection, sent: Post, now_s: int = NOW_S) -> tuple[list[object], object]:
    """Return the event ids of the rows that are new, and the answer."""
    rows: list[Row] = []
    with batches.transaction(hot):
        answer = deduplication.deduplicate(hot, sent, rows, now_s)
    return [each[deduplication.EVENT_ID[sent.spec]] for each in rows], answer


def test_row_with_a_repeated_event_id_is_a_duplicate_in_a_post_and_between_posts(hot: HotConnection) -> None:
    assert deduplicated(hot, post("a", "b", "a", None, None)) == (["a", "b", None, None], Receipt(4, 1, REJECTED))
    assert deduplicated(hot, post("b", "c", None)) == (["c", None], Receipt(2, 1, REJECTED))


def test_many_event_ids_of_a_post_count_once_each_until_they_expire(hot: HotConnection) -> None:
    known, many = [f"{number}" for number in range(0, 350, 2)], [f"{number}" for number in range(350)]
    for start in range(0, len(known), 50):  # fewer than one statement adds
        deduplicated(hot, post(*known[start : start + 50]))
    sent = post(*many, None, *many)
    new = [each for each in many if each not in known]
    assert deduplicated(hot, sent, NOW_S + 1) == ([*new[:175], None], Receipt(176, 525, REJECTED))
    assert deduplicated(hot, sent, NOW_S + SEVEN_DAYS_S)[0] == [*known, None]


def test_event_id_and_key_of_another_project_are_independent(hot: HotConnection) -> None:
    assert deduplicated(hot, post("a", key="key"))[0] == ["a"]
    assert deduplicated(hot, post("a", project="other", key="key", body=b"other"))[0] == ["a"]


def test_event_ids_of_beacons_make_no_hits_of_servers_duplicates(hot: HotConnection) -> None:
    guessed = [f"{number}" for number in range(150)]
    assert deduplicated(hot, post(*guessed, source="beacon"))[1] == Receipt(150, 0, REJECTED)
    assert deduplicated(hot, post(*guessed))[1] == Receipt(150, 0, REJECTED)
    assert deduplicated(hot, post(*guessed, source="beacon"))[1] == Receipt(0, 150, REJECTED)
    assert deduplicated(hot, post(*guessed))[1] == Receipt(0, 150, REJECTED)
    deduplication.delete_project(hot, "site")
    assert hot.execute("SELECT count(*) FROM event_ids").fetchone() == (0,)


@pytest.mark.long
def test_event_ids_of_an_earlier_release_count_for_both_sources(hot: HotConnection) -> None:
    event_ids = [f"{number}" for number in range(1_000)]  # their hashes have all bytes
    deduplicated(hot, post(*event_ids), NOW_S - 5)
    hot.execute("DROP TABLE new_value_days")
    deduplication.create(hot)
    for source in ("beacon", "server"):
        assert deduplicated(hot, post(*event_ids, "new", source=source)) == (["new"], Receipt(1, 1_000, REJECTED))
        expired = NOW_S - 5 + SEVEN_DAYS_S
        assert deduplicated(hot, post(*event_ids, source=source), expired)[1] == Receipt(1_000, 0, REJECTED)


def test_event_id_counts_again_after_seven_days(hot: HotConnection) -> None:
    deduplicated(hot, post("a"))
    assert deduplicated(hot, post("a"), NOW_S + SEVEN_DAYS_S - 1)[0] == []
    assert deduplicated(hot, post("a"), NOW_S + SEVEN_DAYS_S)[0] == ["a"]
    assert deduplicated(hot, post("a"), NOW_S + 2 * SEVEN_DAYS_S - 1)[0] == []


def test_repeated_key_gets_the_first_receipt_and_no_rows(hot: HotConnection) -> None:
    first = deduplicated(hot, post("a", "a", None, key="key"))
    assert first == (["a", None], Receipt(2, 1, REJECTED))
    assert deduplicated(hot, post("a", "a", None, key="key")) == ([], first[1])


def test_key_with_another_body_is_a_mismatch_for_seven_days_and_adds_no_event_id(hot: HotConnection) -> None:
    deduplicated(hot, post("a", key="key"))
    other = post("b", key="key", body=b"other")
    rows, answer = deduplicated(hot, other, NOW_S + SEVEN_DAYS_S - 1)
    assert rows == []
    assert isinstance(answer, IdempotencyMismatch)
    assert deduplicated(hot, other, NOW_S + SEVEN_DAYS_S)[0] == ["b"]


def test_nothing_is_remembered_of_a_transaction_that_is_rolled_back(hot: HotConnection) -> None:
    with suppress(InterruptedError), batches.transaction(hot):
        deduplication.deduplicate(hot, post("a", key="key"), [], NOW_S)
        raise InterruptedError
    assert deduplicated(hot, post("a", key="key", body=b"other")) == (["a"], Receipt(1, 0, REJECTED))


def test_event_ids_of_the_lake_are_duplicates_until_seven_days_after_their_hits(hot: HotConnection) -> None:
    deduplicated(hot, post("known"))
    deduplication.add_event_ids(hot, [("hit", "site", "server", each, NOW_S - 100) for each in ("known", "lake")])
    at_s = NOW_S - 100 + SEVEN_DAYS_S
    assert deduplicated(hot, post("lake"), at_s - 1)[0] == []
    assert deduplicated(hot, post("known", "lake"), at_s)[0] == ["lake"]  # the later time of `known` counts


def test_expired_event_ids_and_keys_are_deleted_and_no_others(hot: HotConnection) -> None:
    deduplicated(hot, post("old", key="old"), NOW_S - SEVEN_DAYS_S)
    deduplicated(hot, post("new", key="new"), NOW_S - SEVEN_DAYS_S + 1)
    deduplication.delete_expired(hot, NOW_S + 0.9)
    assert hot.execute("SELECT seen_s FROM event_ids").fetchall() == [(NOW_S - SEVEN_DAYS_S + 1,)]
    assert hot.execute("SELECT key FROM answers").fetchall() == [("new",)]


def test_event_ids_and_keys_of_a_project_are_deleted_and_no_others(
    hot: HotConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deduplication, "DELETED_AT_ONCE", 100)
    event_ids = [f"event-{number}" for number in range(101)]  # more than one statement deletes
    deduplication.add_event_ids(
        hot, [("hit", project, "server", each, NOW_S) for project in ("site", "other") for each in event_ids]
    )
    deduplicated(hot, post(key="key"))
    deduplicated(hot, post(project="other", key="key"))
    deduplication.delete_project(hot, "site")
    assert hot.execute("SELECT count(*) FROM event_ids").fetchone() == (len(event_ids),)
    assert deduplicated(hot, post(event_ids[0]))[0] == [event_ids[0]]
    assert deduplicated(hot, post(event_ids[0], project="other"))[0] == []
    assert hot.execute("SELECT project_id FROM answers").fetchall() == [("other",)]
