"""Lists that ship with the release are intact, and a changed file is refused."""

from datetime import UTC, date, datetime, time
from pathlib import Path

import msgspec
import pytest

from ingest.classification.classifier import classify
from ingest.errors import InvalidAddressList
from ingest.verification import address_lists
from ingest.verification.address_lists import (
    AddressList,
    age_warning,
    current,
    decode,
    encode,
    newest,
    read_time,
    sha256_of,
    shipped,
    sorted_prefixes,
)

PREFIXES = ("20.42.10.176/28", "2a00:1450:4864::/48")
LIST = AddressList(
    id="example-bot",
    operator="Example",
    tokens=("ExampleBot",),
    complete=True,
    source="https://example.com/bot.json",
    created=datetime(2026, 8, 10, tzinfo=UTC),
    seen=date(2026, 9, 2),
    copies=1,
    sha256="6724826dbaf78992c0a085574a5a67c5a6ef42409973717a846d6e514c2d6172",
    prefixes=PREFIXES,
)
NOT_NAMED = {"OAI-AdsBot"}
"""Tokens that the classification does not yet name."""


def test_shipped_lists_are_intact_and_in_order() -> None:
    assert len(shipped()) == 24
    for each in shipped().values():
        assert sorted_prefixes(each.prefixes) == each.prefixes
        assert each.source.startswith("https://")


def test_tokens_are_names_of_the_column_agent() -> None:
    tokens = {token for each in shipped().values() for token in each.tokens} - NOT_NAMED
    assert {token: classify(f"Mozilla/5.0 (compatible; {token}/1.0)").agent for token in tokens} == {
        token: token for token in tokens
    }


def test_hash_is_that_of_the_sorted_prefixes() -> None:
    # printf '20.42.10.176/28\n2a00:1450:4864::/48' | sha256sum
    assert sha256_of(reversed(PREFIXES)) == "6724826dbaf78992c0a085574a5a67c5a6ef42409973717a846d6e514c2d6172"


def test_file_is_read_as_it_was_written_and_a_missing_folder_has_no_lists(tmp_path: Path) -> None:
    (tmp_path / "example-bot.json").write_bytes(encode(LIST))
    assert address_lists.read_folder(tmp_path) == {"example-bot": LIST}
    assert address_lists.read_folder(tmp_path / "missing") == {}


@pytest.mark.parametrize(
    ("prefixes", "message"),
    [
        ((), "has 0 prefixes"),
        (("0.0.0.0/0",), r"has the prefix 0\.0\.0\.0/0, which is shorter than /12"),
        (("2000::/3",), "has the prefix 2000::/3, which is shorter than /24"),
        (("20.42.10.176/28", "example.com"), "'example.com' does not appear to be an IPv4 or IPv6 network"),
    ],
)
def test_invalid_prefixes_are_refused_also_in_a_list_of_the_owner(
    tmp_path: Path, prefixes: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        sorted_prefixes(prefixes)
    written = msgspec.structs.replace(LIST, prefixes=prefixes, sha256=sha256_of(prefixes))
    (tmp_path / "mine.json").write_bytes(encode(written))
    with pytest.raises(InvalidAddressList, match=f"^the address list example-bot in .*{message}"):
        address_lists.read_owners(tmp_path)
    (tmp_path / "mine.json").write_bytes(encode(LIST))
    assert address_lists.read_owners(tmp_path) == {"example-bot": LIST}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *((content, "is not an address list") for content in (b"", b"[]", b"{}", b'{"id": "\xff"}', b"[" * 100_000)),
        (encode(LIST).replace(b"2026-08-10T00:00:00Z", b"2026-08-10T00:00:00"), "is not an address list"),
        (encode(LIST).replace(b".176/28", b".176/27"), "was changed: its prefixes do not have the SHA-256"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_file_that_is_no_list_or_was_changed_is_refused(content: bytes, message: str) -> None:
    assert content != encode(LIST)
    with pytest.raises(InvalidAddressList, match=f"bot {message}"):
        decode(content, "bot")


@pytest.mark.parametrize(
    ("time", "is_fresh"),
    [
        (datetime(2026, 7, 10, 23, 59, 59, tzinfo=UTC), False),
        (datetime(2026, 7, 11, tzinfo=UTC), True),  # 30 days before the list was created
        (datetime(2026, 8, 20, tzinfo=UTC), True),
        (datetime(2026, 10, 2, 23, 59, 59, tzinfo=UTC), True),  # 30 days after the day of the copy
        (datetime(2026, 10, 3, tzinfo=UTC), False),
    ],
)
def test_list_is_fresh_from_30_days_before_its_creation_until_30_after_its_copy(time: datetime, is_fresh: bool) -> None:
    assert (int(time.timestamp()) * 1_000_000 in LIST.fresh_us) is is_fresh


def test_list_without_a_date_of_creation_is_fresh_around_its_copy() -> None:
    undated = msgspec.structs.replace(LIST, created=None)
    assert undated.fresh_us.start == int(datetime(2026, 8, 3, tzinfo=UTC).timestamp()) * 1_000_000
    assert undated.fresh_us.stop == LIST.fresh_us.stop


def test_prefixes_are_distinct_and_in_the_order_of_their_addresses() -> None:
    texts = ["2a00::/48", "100.0.0.0/24", "20.0.0.0/24", "20.0.0.0/24", "20.0.0.1"]
    assert sorted_prefixes(texts) == ("20.0.0.0/24", "20.0.0.1/32", "100.0.0.0/24", "2a00::/48")


@pytest.mark.parametrize(
    "text",
    [
        "2026-08-14T20:03:38.055838",
        "2026-08-14T20:03:38Z",
        "2026-08-14T22:03:38.1+02:00",
        "2026-08-14T20:03:38.000+00:00",
    ],
)
def test_time_of_an_operator_is_utc_unless_it_has_a_zone(text: str) -> None:
    assert read_time(text) == datetime(2026, 8, 14, 20, 3, 38, tzinfo=UTC)


def test_copy_that_was_seen_last_is_used_with_the_rules_of_the_release() -> None:
    prefixes = ("9.9.9.0/24",)
    copy = msgspec.structs.replace(
        LIST, seen=date(2026, 9, 3), tokens=("Former",), complete=False, prefixes=prefixes, sha256=sha256_of(prefixes)
    )
    [used] = newest({LIST.id: LIST}, {LIST.id: copy}).values()
    assert (used.prefixes, used.seen, used.tokens, used.complete) == (prefixes, copy.seen, LIST.tokens, True)
    older = msgspec.structs.replace(copy, seen=date(2026, 9, 1))
    assert newest({LIST.id: LIST}, {LIST.id: older}) == {LIST.id: LIST}
    own = msgspec.structs.replace(copy, id="own-bot")
    assert newest({LIST.id: LIST}, {"own-bot": own}) == {LIST.id: LIST, "own-bot": own}


@pytest.mark.parametrize(
    ("day", "warning"),
    [
        (date(2026, 10, 2), None),
        (date(2026, 10, 3), "1 of 2 address lists is older than 30 days, the newest of 2026-09-02"),
        (date(2026, 12, 1), "2 of 2 address lists are older than 30 days, the newest of 2026-10-01"),
    ],
)
def test_lists_whose_absence_proves_nothing_any_more_are_a_warning(day: date, warning: str | None) -> None:
    newer = msgspec.structs.replace(LIST, id="newer", seen=date(2026, 10, 1))
    partial = msgspec.structs.replace(LIST, id="partial", complete=False)
    page = msgspec.structs.replace(LIST, id="page", is_json=False)
    old = age_warning([LIST, newer, partial, page], datetime.combine(day, time(), UTC))
    assert (old and old.text().partition(":")[0]) == warning
    assert old is None or old.text().endswith("impostors of today are not recognised")
    assert [each.is_fresh(datetime.combine(day, time(), UTC)) for each in (LIST, newer)] == [
        not warning,
        warning is None or not warning.startswith("2"),
    ]


def test_lists_in_use_are_those_of_the_release_with_newer_ones_of_the_owner(tmp_path: Path) -> None:
    newer = msgspec.structs.replace(shipped()["openai-gptbot"], seen=date(2026, 11, 20))
    (tmp_path / "openai-gptbot.json").write_bytes(encode(newer))
    assert set(current(tmp_path)) == {*shipped().values(), newer} - {shipped()["openai-gptbot"]}
    assert set(current(tmp_path / "none")) == set(shipped().values())
