"""Limits on failed sign-ins, counted over all server processes in the control database.

1. After 5 failures of one account from one address within an hour, each further attempt waits: 30 s after the fifth
   failure, then 1, 2, 4 and 8 minutes, at most 15.
2. One address has at most 20 failures in any 15 minutes, over all accounts.
3. After 20 failures of one account within 15 minutes, over all addresses, the account has a slow lane: its attempts
   take turns, one in 10 s. An address loses a turn that it has not used for 2 minutes, and can take another one after
   its attempt. Strangers with n addresses thus delay an owner by at most 10 n seconds, and lock out nobody, unless more
   than 360 addresses wait at once. However many they are, they guess at most 6 passwords in a minute, after 20 at once.
   An address from which the account signed in during the last 30 days, by password or link, is exempt.

A refused attempt is not counted, and is refused even with the right password. An attempt is counted before its
password is checked, because attempts may run in parallel; a right password deletes the failures of its account and
address. All addresses of an IPv6 /56 network are one address.

A row has keyed hashes of the account's name and of the address. On SQLite the key is the secret of the running service:
each start begins with new counts. On PostgreSQL it is derived from the secret of the control database: all nodes count
together, and a start changes nothing.
"""

import hashlib
import math
from dataclasses import dataclass

import sqlalchemy as sa

from api.dashboard.accounts import users
from api.http.rate_limit import hashed_address
from warehouse.control.database import METADATA, transaction

FREE_FAILURES = 5
"""Number of failures of one account from one address before a wait."""
FIRST_WAIT_S = 30
WAIT_MAX_S = 15 * 60
MEMORY_S = 3_600
"""Time for which a failure counts towards the wait of its account and address, in seconds."""
WINDOW_S = 15 * 60
ADDRESS_FAILURES_MAX = ACCOUNT_FAILURES_MAX = 20
"""Maximum number of failures in any WINDOW_S seconds."""
TURN_S = 10
"""Interval between two turns of an account's slow lane, in seconds."""
TURN_VALID_S = 120
"""Time for which an address has its turn, in seconds."""
QUEUE_MAX_S = 3_600
"""Longest wait for a turn, in seconds: an account has at most 360 turns ahead."""
USED = ""
"""Address of a turn that was used."""
EXEMPTION_S = 30 * 86_400
"""Time after a sign-in for which its address is exempt from the limit per account, in seconds."""
LOCK_KEY = 0x7369676E
"""Key of the advisory lock under which one attempt at a time is counted on PostgreSQL: `sign` in ASCII."""

ATTEMPTS = sa.Table(
    "sign_in_attempts",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("account", sa.String(32), nullable=False, index=True),
    sa.Column("address", sa.String(32), nullable=False, index=True),
    sa.Column("is_success", sa.Boolean, nullable=False),
    sa.Column("at_s", sa.BigInteger, nullable=False, index=True),
)


@dataclass(frozen=True, slots=True)
class AttemptKey:
    """Account and address by which an attempt is counted, as keyed hashes."""

    account: str
    address: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt to sign in. A refused attempt has no id, and `wait_s` is the time until the next attempt in seconds;
    a counted attempt has an id, and `wait_s` is 0."""

    id: int | None
    wait_s: int


def attempt_key(secret: bytes, address: str, name: str) -> AttemptKey:
    """Return the hashes of an attempt's account and address, under `secret`. The account need not exist."""
    folded = users.folded(name).encode(errors="surrogatepass")
    account = hashlib.blake2b(folded, digest_size=16, key=secret, person=b"account").hexdigest()
    return AttemptKey(account, hashed_address(address, secret, 56).hex())


def begin(engine: sa.Engine, key: AttemptKey, now_s: int) -> Attempt:
    """Count an attempt as failed, or return the seconds until the next attempt without counting."""
    with transaction(engine) as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK_KEY)))
        _delete_old(connection, now_s)
        wait_s = _wait_s(connection, key, now_s) or _wait_for_turn_s(connection, key, now_s)
        if wait_s:
            return Attempt(None, wait_s)
        counted = ATTEMPTS.insert().values(_row(key, now_s, is_success=False)).returning(ATTEMPTS.c.id)
        return Attempt(connection.execute(counted).scalar_one(), 0)


def withdraw(engine: sa.Engine, key: AttemptKey, attempt: Attempt) -> None:
    """Delete a counted attempt with this key, because the service could not answer the attempt."""
    with transaction(engine) as connection:
        # SQLite may give the id of a deleted row to another attempt.
        connection.execute(ATTEMPTS.delete().where(ATTEMPTS.c.id == attempt.id, _has_key(key)))


def passed(engine: sa.Engine, key: AttemptKey, now_s: int) -> None:
    """Store that an account signed in from an address: delete the failures of both."""
    with transaction(engine) as connection:
        connection.execute(ATTEMPTS.delete().where(_has_key(key)))
        connection.execute(ATTEMPTS.insert().values(_row(key, now_s, is_success=True)))


def _wait_s(connection: sa.Connection, key: AttemptKey, now_s: int) -> int:
    """Return the longer wait of the first two limits, in seconds."""
    until_s = (
        _end_of_pause_s(connection, key),
        _end_of_window_s(connection, ATTEMPTS.c.address == key.address, ADDRESS_FAILURES_MAX),
    )
    return max(0, math.ceil(max(until_s) - now_s))


def _wait_for_turn_s(connection: sa.Connection, key: AttemptKey, now_s: int) -> int:
    """Return the time until the address's turn in the slow lane of the account, in seconds; 0 if this is its turn.

    The turns of an account are rows of another account, whose `at_s` may be in the future.
    """
    window = _end_of_window_s(connection, ATTEMPTS.c.account == key.account, ACCOUNT_FAILURES_MAX)
    if window <= now_s or _is_exempt(connection, key):
        return 0
    lane = AttemptKey(hashlib.blake2b(key.account.encode(), digest_size=16, person=b"turns").hexdigest(), key.address)
    own_turn = _has_key(lane) & (ATTEMPTS.c.at_s > now_s - TURN_VALID_S)
    turn_s = connection.execute(sa.select(ATTEMPTS.c.at_s).where(own_turn)).scalar_one_or_none()
    if turn_s is None:
        last_s = sa.select(sa.func.max(ATTEMPTS.c.at_s)).where(ATTEMPTS.c.account == lane.account)
        turn_s = max(now_s, (connection.execute(last_s).scalar_one() or 0) + TURN_S)
        if turn_s > now_s + QUEUE_MAX_S:
            return turn_s - now_s
        connection.execute(ATTEMPTS.insert().values(_row(lane, turn_s, is_success=False)))
    if turn_s <= now_s:
        connection.execute(ATTEMPTS.update().where(own_turn).values(address=USED))
    return max(0, turn_s - now_s)


def _end_of_pause_s(connection: sa.Connection, key: AttemptKey) -> int:
    """Return the end of the wait of an account and address, in seconds since 1970; 0 without a wait."""
    query = sa.select(sa.func.count(), sa.func.max(ATTEMPTS.c.at_s))
    failures, last_s = connection.execute(query.where(_has_key(key), ~ATTEMPTS.c.is_success)).one()
    if failures < FREE_FAILURES:
        return 0
    wait_s: int = min(WAIT_MAX_S, FIRST_WAIT_S * 2 ** (failures - FREE_FAILURES))
    return int(last_s) + wait_s


def _end_of_window_s(connection: sa.Connection, condition: sa.ColumnElement[bool], failures_max: int) -> int:
    """Return the time from which the window has fewer than `failures_max` failures, in seconds since 1970; 0 if there
    are fewer failures in all."""
    query = sa.select(ATTEMPTS.c.at_s).where(condition, ~ATTEMPTS.c.is_success).order_by(ATTEMPTS.c.at_s.desc())
    oldest_s = connection.execute(query.offset(failures_max - 1).limit(1)).scalar_one_or_none()
    return 0 if oldest_s is None else oldest_s + WINDOW_S


def _is_exempt(connection: sa.Connection, key: AttemptKey) -> bool:
    """Return whether the account signed in from the address within the last EXEMPTION_S."""
    query = sa.select(ATTEMPTS.c.id).where(_has_key(key), ATTEMPTS.c.is_success)
    return connection.execute(query.limit(1)).first() is not None


def _delete_old(connection: sa.Connection, now_s: int) -> None:
    """Delete the rows that no longer count."""
    age = sa.case((ATTEMPTS.c.is_success, EXEMPTION_S), else_=MEMORY_S)
    connection.execute(ATTEMPTS.delete().where(ATTEMPTS.c.at_s <= now_s - age))


def _has_key(key: AttemptKey) -> sa.ColumnElement[bool]:
    return (ATTEMPTS.c.account == key.account) & (ATTEMPTS.c.address == key.address)


def _row(key: AttemptKey, now_s: int, *, is_success: bool) -> dict[str, object]:
    return {"account": key.account, "address": key.address, "is_success": is_success, "at_s": now_s}
