"""API keys: the form of a token, validity, and the cache of the keyring."""

import asyncio
import hashlib
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import astuple
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.accounts import keys
from api.accounts.keys import BASE62, LAST_USE_EVERY_S, Keyring, is_well_formed
from api.errors import KeyNotFound
from tests.stores import sql
from warehouse.control import audit, database, projects, schema_migrations
from warehouse.database.pool import Pool
from warehouse.errors import ProjectNotFound
from warehouse.folder import sqlite_url

NOW_S = 1_790_000_000
PREFIX = "rdr_admin_"
TOKEN = "rdr_admin_0123456789ABCDEFGHIJKLMNOPQRSTUV1ggZdL"
"""A token whose last six characters are the CRC-32 of the 32 before them, 1,546,885,699, in base 62."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "control.sqlite"


@pytest.fixture
def engine(file: Path) -> Iterator[Pool]:
    engine = database.connect(sqlite_url(file))
    for project in ("site", "other"):
        projects.create(engine, project, (), NOW_S)
    yield engine
    engine.close()


def new(engine: Pool, expires_s: int | None = None, name: str = "") -> tuple[keys.Key, str]:
    return keys.create(engine, "site", name, "write", expires_s, NOW_S)


def stored(engine: Pool, id: str) -> keys.Key:
    return next(key for key in keys.list_all(engine) if key.id == id)


def keyring(engine: Pool, now_s: float = NOW_S) -> Keyring:
    """Return the keyring of a process that has just started."""
    return Keyring(engine, lambda: now_s)


def is_valid(engine: Pool, token: str) -> bool:
    """Return whether a process with an empty cache accepts the token."""
    try:
        keyring(engine).look_up(token)
    except KeyNotFound:
        return False
    return True


def test_token_is_the_prefix_of_its_scope_a_secret_and_a_checksum(engine: Pool) -> None:
    prefixes: dict[keys.Scope, str] = {"write": "rdr_admin_", "ingest": "rdr_ingest_", "read": "rdr_read_"}
    for scope, prefix in prefixes.items():
        key, token = keys.create(engine, "site", "", scope, None, NOW_S)
        assert re.fullmatch(f"{prefix}[0-9A-Za-z]{{38}}", token)
        assert is_well_formed(token)
        assert not is_well_formed("rdr_other_" + token.removeprefix(prefix))
        assert stored(engine, key.id).start == key.start == token[: len(prefix) + 4]


@pytest.mark.parametrize("scope", keys.SCOPES)
def test_key_of_an_older_release_keeps_its_scope_although_it_begins_with_admin(engine: Pool, scope: keys.Scope) -> None:
    key, _ = keys.create(engine, "site", "", scope, None, NOW_S)
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    sql.run(engine, "UPDATE keys SET sha256 = :digest WHERE id = :id", digest=digest, id=key.id)
    assert is_well_formed(TOKEN)
    assert keyring(engine).look_up(TOKEN).scope == scope


def test_tokens_do_not_repeat(engine: Pool) -> None:
    assert len({new(engine)[1] for _ in range(100)}) == 100


def test_checksum_is_crc_32_in_base_62() -> None:
    secret, checksum = TOKEN[len(PREFIX) : -6], TOKEN[-6:]
    remainder = 0xFFFFFFFF  # https://www.rfc-editor.org/rfc/rfc1952#section-8, bit by bit
    for byte in secret.encode():
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (0xEDB88320 if remainder & 1 else 0)
    value = 0
    for character in checksum:
        value = value * 62 + BASE62.index(character)
    assert value == remainder ^ 0xFFFFFFFF
    assert is_well_formed(TOKEN)


def test_checksum_detects_each_base_62_character_in_each_place() -> None:
    for place, right in enumerate(TOKEN):
        for wrong in set(BASE62) - {right}:
            assert not is_well_formed(TOKEN[:place] + wrong + TOKEN[place + 1 :])


@settings(max_examples=200)
@given(st.integers(len(PREFIX), len(TOKEN) - 2))
def test_checksum_detects_two_swapped_neighbours(place: int) -> None:
    swapped = TOKEN[:place] + TOKEN[place + 1] + TOKEN[place] + TOKEN[place + 2 :]
    assert is_well_formed(swapped) == (swapped == TOKEN)


def test_token_with_other_text_is_not_well_formed() -> None:
    for token in ("", PREFIX, TOKEN + "0", " " + TOKEN, TOKEN + "\n", TOKEN * 2, TOKEN.upper(), "\xe9"):
        assert not is_well_formed(token)


def test_token_is_not_in_the_database(engine: Pool, file: Path) -> None:
    _, token = new(engine)
    keyring(engine).look_up(token)
    engine.close()
    stored = b"".join(each.read_bytes() for each in file.parent.iterdir())
    assert token.encode() not in stored
    assert token.removeprefix(PREFIX)[:32].encode() not in stored


def test_key_is_looked_up_by_its_token(engine: Pool) -> None:
    created, token = keys.create(engine, "site", "ci", "read", NOW_S * 2, NOW_S)
    assert (created.project, created.name, created.scope) == ("site", "ci", "read")
    assert (created.created_s, created.expires_s) == (NOW_S, NOW_S * 2)
    internal_id = projects.find(engine, "site").internal_id
    assert astuple(keyring(engine).look_up(token)) == (*astuple(created), internal_id)


def test_key_of_an_unknown_project_is_not_created(engine: Pool) -> None:
    with pytest.raises(ProjectNotFound):
        keys.create(engine, "nowhere", "", "read", None, NOW_S)
    assert keys.list_all(engine) == []


def test_keys_of_all_projects_or_of_one_are_listed_oldest_first(engine: Pool) -> None:
    for name, project, created_s in (("second", "site", 2), ("first", "other", 1), ("third", "site", 3)):
        keys.create(engine, project, name, "read", None, created_s)
    assert [key.name for key in keys.list_all(engine)] == ["first", "second", "third"]
    assert [key.name for key in keys.list_all(engine, "site")] == ["second", "third"]


def test_valid_key_is_selected_by_its_id_start_and_token_and_in_its_project_by_its_name(engine: Pool) -> None:
    created, token = new(engine, name="ci")
    for text in (created.id, created.start, f"{created.start}…", token):
        for project in (None, "site"):
            assert keys.find_valid(engine, text, project, NOW_S) == created
        with pytest.raises(KeyNotFound, match="no valid key of the project other"):
            keys.find_valid(engine, text, "other", NOW_S)
    assert keys.find_valid(engine, "ci", "site", NOW_S) == created
    with pytest.raises(ProjectNotFound):
        keys.find_valid(engine, "ci", "nowhere", NOW_S)
    with pytest.raises(KeyNotFound, match="no valid key has the id, start or name 'nothing'"):
        keys.find_valid(engine, "nothing", None, NOW_S)


def test_name_without_a_project_and_name_of_several_keys_list_the_commands_to_type(engine: Pool) -> None:
    first, other = (keys.create(engine, project, "ci", "read", None, NOW_S)[0] for project in ("site", "other"))
    with pytest.raises(KeyNotFound) as raised:
        keys.find_valid(engine, "ci", None, NOW_S)
    for key in (first, other):
        assert f"`readership key revoke {key.id}` for {key.start}… of the project {key.project}" in str(raised.value)
    keys.revoke(engine, other.id, NOW_S)
    with pytest.raises(KeyNotFound, match="a name needs --project") as raised:
        keys.find_valid(engine, "ci", None, NOW_S)
    assert first.id in str(raised.value)
    assert other.id not in str(raised.value)
    again = keys.create(engine, "site", "ci", "read", None, NOW_S + 1)[0]
    with pytest.raises(KeyNotFound, match=f"{first.id}.*{again.id}"):
        keys.find_valid(engine, "ci", "site", NOW_S)
    assert keys.find_valid(engine, first.id, None, NOW_S) == first


def test_revoked_and_expired_keys_and_an_empty_name_are_not_selected(engine: Pool) -> None:
    (revoked, token), (expired, _), (nameless, _) = new(engine, name="ci"), new(engine, NOW_S, "ci"), new(engine)
    keys.revoke(engine, revoked.id, NOW_S)
    for text in (revoked.id, revoked.start, token, expired.id, "ci", nameless.name):
        with pytest.raises(KeyNotFound, match="no valid key of the project site"):
            keys.find_valid(engine, text, "site", NOW_S)


def test_error_message_does_not_show_the_token(engine: Pool) -> None:
    for look_up in (lambda: keys.find_valid(engine, TOKEN, None, NOW_S), lambda: keyring(engine).look_up(TOKEN)):
        with pytest.raises(KeyNotFound) as raised:
            look_up()
        assert TOKEN[-20:] not in str(raised.value)


def test_expired_key_is_not_valid(engine: Pool) -> None:
    assert is_valid(engine, new(engine, expires_s=NOW_S + 1)[1])
    assert not is_valid(engine, new(engine, expires_s=NOW_S)[1])
    key = new(engine, expires_s=NOW_S)[0]
    assert key.is_valid(NOW_S - 1)
    assert not key.is_valid(NOW_S)


def test_revoked_key_is_not_valid_and_the_time_of_the_first_revocation_stays(engine: Pool) -> None:
    key, token = new(engine)
    _, other = new(engine)
    keys.revoke(engine, key.id, NOW_S, "ada")
    keys.revoke(engine, key.id, NOW_S + 1_000, "bob")
    assert stored(engine, key.id).revoked_s == NOW_S
    revocations = [entry for entry in audit.entries(engine, 0, 9) if entry.action == "revoked an API key"]
    assert [(entry.who, entry.project) for entry in revocations] == [("ada", "site")]
    assert not is_valid(engine, token)
    assert is_valid(engine, other)
    with pytest.raises(KeyNotFound):
        keys.revoke(engine, "nothing", NOW_S)


def test_key_is_cached_once_it_was_looked_up(engine: Pool) -> None:
    key, token = new(engine)
    ring = keyring(engine)
    assert ring.cached(token) is None
    looked_up = asyncio.run(ring.shared_look_up(token))
    assert looked_up.id == key.id
    assert ring.cached(token) is looked_up
    assert ring.cached(TOKEN) is None


def test_key_that_expires_is_not_returned_from_the_cache(engine: Pool) -> None:
    _, token = new(engine, expires_s=NOW_S + 1)
    times_s = [NOW_S]
    ring = Keyring(engine, lambda: times_s[-1])
    asyncio.run(ring.shared_look_up(token))
    assert ring.cached(token) is not None
    times_s.append(NOW_S + 1)
    assert ring.cached(token) is None


def use(engine: Pool, token: str, now_s: int) -> None:
    """Look a key up, and wait until the time of use is stored."""

    async def work() -> None:
        await keyring(engine, now_s).shared_look_up(token)
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})

    asyncio.run(work())


def test_requests_that_wait_for_one_token_share_a_look_up(engine: Pool) -> None:
    key, token = new(engine)
    use(engine, token, NOW_S)
    statements: list[str] = []
    sql.watch(engine, lambda statement: statements.append(statement) if "FROM keys" in statement else None)

    async def work() -> list[keys.BearerKey]:
        ring = keyring(engine)
        bearer_keys = await asyncio.gather(*(ring.shared_look_up(token) for _ in range(50)))
        assert ring.cached(token) is bearer_keys[0]
        return bearer_keys

    assert {each.id for each in asyncio.run(work())} == {key.id}
    assert len(statements) == 1


def test_request_that_disconnects_does_not_cancel_the_look_up_of_others(engine: Pool) -> None:
    key, token = new(engine)

    async def work() -> None:
        ring = keyring(engine)
        first, second = (asyncio.ensure_future(ring.shared_look_up(token)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).id == key.id
        assert first.cancelled()

    asyncio.run(work())


def test_requests_after_a_revocation_are_refused_although_earlier_ones_shared_a_look_up(engine: Pool) -> None:
    key, token = new(engine)

    async def work() -> None:
        ring = keyring(engine)
        assert (await ring.shared_look_up(token)).id == key.id
        keys.revoke(engine, key.id, NOW_S)
        refused = await asyncio.gather(*(ring.shared_look_up(token) for _ in range(3)), return_exceptions=True)
        assert [type(each) for each in refused] == [KeyNotFound] * 3

    asyncio.run(work())


def test_time_of_last_use_is_written_once_a_minute(engine: Pool) -> None:
    key, token = new(engine)
    assert key.last_used_s is None
    for now_s, stored_s in (
        (NOW_S, NOW_S),
        (NOW_S + LAST_USE_EVERY_S - 1, NOW_S),
        (NOW_S + LAST_USE_EVERY_S, NOW_S + LAST_USE_EVERY_S),
    ):
        use(engine, token, now_s)
        assert stored(engine, key.id).last_used_s == stored_s


def test_look_up_does_not_wait_for_the_lock_of_the_database(engine: Pool, file: Path) -> None:
    """Check that a request is answered while another process writes; the write of the last use then fails."""
    key, token = new(engine)

    async def work() -> None:
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            ring = keyring(engine)
            assert (await ring.shared_look_up(token)).id == key.id
            assert ring.cached(token) is not None
            (storing,) = asyncio.all_tasks() - {asyncio.current_task()}
            assert not storing.done()
            other.execute("ROLLBACK")
            await storing

    asyncio.run(work())
    assert stored(engine, key.id).last_used_s is not None


def test_control_database_of_0_1_0_stores_keys_of_every_scope(database_url: str) -> None:
    """Recreate the column `scope` of 0.1.0, which had 5 characters; PostgreSQL enforces this length."""
    engine = database.connect(database_url, ())
    projects.create(engine, "site", (), 1)
    with engine.transaction() as connection:
        if engine.url.startswith("postgresql"):
            connection.execute("ALTER TABLE keys ALTER COLUMN scope TYPE VARCHAR(5)")
        connection.execute("UPDATE schema_version SET version = 2")
    engine.close()
    engine = database.connect(database_url, schema_migrations.MIGRATIONS[:2])
    for scope in keys.SCOPES:
        token = keys.create(engine, "site", scope, scope, None, 1)[1]
        assert keyring(engine).look_up(token).scope == scope
    engine.close()


def test_key_of_an_older_release_has_no_start(database_url: str) -> None:
    engine = database.connect(database_url, schema_migrations.MIGRATIONS[:3])
    projects.create(engine, "site", (), 1)
    id = keys.create(engine, "site", "old", "read", None, 1)[0].id
    with engine.transaction() as connection:
        connection.execute("ALTER TABLE keys DROP COLUMN start")
        connection.execute("DROP TABLE IF EXISTS share_links")
    engine.close()
    engine = database.connect(database_url)
    assert stored(engine, id).start == ""
    engine.close()
