"""Hits without a key add a limited number of new values to a project in a day; further ones are stored as others."""

import hashlib
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from ingest.hits.event import NAMES_PER_DAY
from ingest.hits.hit import Event, Hit
from ingest.hits.row import row
from ingest.hotlog import deduplication, new_values
from ingest.hotlog.new_values import NewValues
from warehouse.hotlog import batches
from warehouse.hotlog.connection import HotConnection, HotLogPlace
from warehouse.schema import HOT, Row
from warehouse.tables import EVENTS_TABLE

DAY_S = 86_400
NOW_S = 20_000 * DAY_S  # 2024-10-04
SECRET = b"secret"


@pytest.fixture
def hot(hot_log: HotLogPlace) -> Iterator[HotConnection]:
    with closing(batches.connect(hot_log)) as connection:
        deduplication.create(connection)
        yield connection


@pytest.fixture
def limit() -> NewValues:
    return NewValues(3, SECRET)


def view(
    path: str, project: str = "site", source: str = "beacon", host: str | None = None, utm: str | None = None
) -> Row:
    referrer = host and f"https://{host}/page"
    return row(
        project, Hit(path, NOW_S, "", referrer, {"utm_source": utm} if utm else {}, None, None, None), source, NOW_S
    )


def stored(
    hot: HotConnection, limit: NewValues, *rows: Row, now_s: int = NOW_S, column: str = "path"
) -> list[str | int | None]:
    """Return a column of the rows as they are stored."""
    with batches.transaction(hot):
        return [each[HOT.names.index(column)] for each in limit.bounded(hot, rows, now_s)]


def seen(hot: HotConnection) -> list[bytes]:
    return sorted(id for (id,) in hot.execute("SELECT id FROM seen_values").fetchall())


def test_paths_above_the_limit_are_others_and_earlier_ones_stay(hot: HotConnection, limit: NewValues) -> None:
    assert stored(hot, limit, view("/a"), view("/b"), view("/a")) == ["/a", "/b", "/a"]
    assert stored(hot, limit, view("/c"), view("/d"), view("/a")) == ["/c", "/(other)", "/a"]
    assert stored(hot, limit, view("/d"), view("/b"), view("/c")) == ["/(other)", "/b", "/c"]
    assert len(seen(hot)) == 3


def test_hits_with_a_key_and_other_projects_have_limits_of_their_own(hot: HotConnection, limit: NewValues) -> None:
    paths = [f"/{number}" for number in range(4)]
    assert stored(hot, limit, *map(view, paths))[-1] == "/(other)"
    assert stored(hot, limit, *(view(path, project="another") for path in paths)) == [*paths[:3], "/(other)"]
    assert stored(hot, limit, view("/3"), *(view(path, source="server") for path in paths)) == ["/(other)", *paths]


def test_referring_hosts_and_sources_are_limited_in_the_same_way(hot: HotConnection, limit: NewValues) -> None:
    rows = [view("/a", host=f"{number}.example", utm=f"{number}") for number in range(4)]
    assert stored(hot, limit, *rows, column="path") == ["/a"] * 4
    assert stored(hot, limit, *rows, column="utm_source") == ["0", "1", "2", "(other)"]
    assert stored(hot, limit, *rows, column="referrer_host") == ["0.example", "1.example", "2.example", "(other)"]
    assert stored(hot, limit, *rows, column="referrer")[2:] == ["https://2.example/page", None]


def test_pages_of_the_last_days_keep_their_names_on_a_day_full_of_others(hot: HotConnection, limit: NewValues) -> None:
    assert stored(hot, limit, view("/a"), view("/b")) == ["/a", "/b"]
    for days in range(1, 9):
        now_s = NOW_S + days * DAY_S
        assert stored(hot, limit, *(view(f"/{days}-{n}") for n in range(5)), now_s=now_s)[2:] == [
            f"/{days}-2",
            "/(other)",
            "/(other)",
        ]
        assert stored(hot, limit, view("/a"), view(f"/{days}-4"), now_s=now_s) == ["/a", "/(other)"]
        deduplication.delete_expired(hot, now_s)
    assert len(seen(hot)) == 1 + 7 * 3  # the page /a, and the values of seven days; /b has expired
    assert stored(hot, limit, view("/b"), now_s=now_s) == ["/(other)"]


def test_processes_share_the_limit_and_a_restart_does_not_reset_it(hot: HotConnection, limit: NewValues) -> None:
    another = NewValues(3, SECRET)
    assert stored(hot, limit, view("/a"), view("/b")) == ["/a", "/b"]
    assert stored(hot, another, view("/c"), view("/d"), view("/a")) == ["/c", "/(other)", "/a"]
    assert stored(hot, NewValues(3, SECRET), view("/e"), view("/c")) == ["/(other)", "/c"]


def test_values_of_a_failed_transaction_are_new_again(hot: HotConnection, limit: NewValues) -> None:
    with suppress(ZeroDivisionError), batches.transaction(hot):
        limit.bounded(hot, [view("/a"), view("/b"), view("/c")], NOW_S)
        raise ZeroDivisionError
    assert stored(hot, limit, view("/d"), view("/e"), view("/f"), view("/a")) == ["/d", "/e", "/f", "/(other)"]


def test_stored_hash_of_a_path_needs_the_secret(hot: HotConnection, limit: NewValues) -> None:
    stored(hot, limit, view("/a"))
    (id,) = seen(hot)
    assert not id.endswith(hashlib.blake2b(b"path\0/a", digest_size=8).digest())
    assert id.endswith(hashlib.blake2b(b"path\0/a", digest_size=8, key=SECRET).digest())


def test_values_and_warnings_of_a_deleted_project_are_deleted(hot: HotConnection, limit: NewValues) -> None:
    rows = [view(f"/{number}", project=project) for project in ("site", "another") for number in range(4)]
    stored(hot, limit, *rows)
    deduplication.delete_project(hot, "site")
    assert stored(hot, NewValues(3, SECRET), *rows[:4]) == ["/0", "/1", "/2", "/(other)"]
    deduplication.delete_project(hot, "site")
    assert list(new_values.warnings(hot, "site")) == []
    assert len(list(new_values.warnings(hot, "another"))) == 1


def test_warning_names_the_last_day_and_the_number_of_views(hot: HotConnection, limit: NewValues) -> None:
    assert list(new_values.warnings(hot, "site")) == []
    for number in range(2):
        stored(hot, limit, *(view(f"/{each}") for each in [*range(3), "x", "x"]), now_s=NOW_S + number * DAY_S)
    stored(hot, limit, *(view("/0", utm=f"{each}") for each in range(4)))
    reached = "(READERSHIP_NEW_VALUES_PER_DAY) on 1 day, the last of them 2024-10-04:"
    assert list(map(str, new_values.warnings(hot, "site"))) == [
        f"beacons reached the limit of new paths {reached} 2 views are counted under /(other)",
        f"beacons reached the limit of new utm_sources {reached} 1 view is counted under (other)",
    ]
    deduplication.delete_expired(hot, NOW_S + 8 * DAY_S)
    assert list(new_values.warnings(hot, "site")) == []


def test_names_of_events_have_a_limit_with_a_key_and_another_one_without(hot: HotConnection) -> None:
    sent = [
        (Hit("/a", NOW_S * 1_000_000, "", None, {}, None, None, None, event=Event(f"{source} {number}")), source)
        for source in ("beacon", "server")
        for number in range(NAMES_PER_DAY + 2)
    ]
    rows = [row("site", hit, source, NOW_S * 1_000_000) for hit, source in sent]
    name = EVENTS_TABLE.hot.names.index("name")
    with batches.transaction(hot):
        bounded = NewValues().bounded(hot, rows, NOW_S, EVENTS_TABLE)
        time = (*rows[0][:name], "engagement", *rows[0][name + 1 :])
        assert [*NewValues().bounded(hot, [time], NOW_S, EVENTS_TABLE)] == [time]  # after the limit is used up
    names = Counter(each[name] for each in bounded)
    assert Counter(each.partition(" ")[0] for each in names) == {
        "beacon": NAMES_PER_DAY,
        "server": NAMES_PER_DAY,
        "(other)": 1,
    }
    assert names["(other)"] == 4
    senders = [str(each).partition(" ")[0] for each in new_values.warnings(hot, "site")]
    assert senders == ["beacons", "servers"]
