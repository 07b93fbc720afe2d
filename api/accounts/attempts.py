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
from dataclasses import asdict, dataclass

from api.accounts import users
from api.client_address import hashed_address
from warehouse.control.database import statements
from warehouse.database.pool import Pool
from warehouse.database.statements import Connection

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
STATEMENTS = statements(__file__)


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


def begin(control: Pool, key: AttemptKey, now_s: int) -> Attempt:
    """Count an attempt as failed, or return the seconds until the next attempt without counting."""
    with control.transaction() as connection:
        STATEMENTS.run(connection, "LOCK")
        STATEMENTS.run(connection, "DELETE_OLD", {"success_s": now_s - EXEMPTION_S, "failure_s": now_s - MEMORY_S})
        wait_s = _wait_s(connection, key, now_s) or _wait_for_turn_s(connection, key, now_s)
        return Attempt(None, wait_s) if wait_s else Attempt(_add(connection, key, now_s, is_success=False), 0)


def withdraw(control: Pool, key: AttemptKey, attempt: Attempt) -> None:
    """Delete a counted attempt with this key, because the service could not answer the attempt."""
    with control.transaction() as connection:
        STATEMENTS.run(connection, "WITHDRAW", {**asdict(key), "id": attempt.id})


def passed(control: Pool, key: AttemptKey, now_s: int) -> None:
    """Store that an account signed in from an address: delete the failures of both."""
    with control.transaction() as connection:
        STATEMENTS.run(connection, "DELETE_OF_KEY", asdict(key))
        _add(connection, key, now_s, is_success=True)


def _add(connection: Connection, key: AttemptKey, at_s: int, *, is_success: bool) -> int:
    ((id,),) = STATEMENTS.run(connection, "ADD", {**asdict(key), "is_success": is_success, "at_s": at_s}).fetchall()
    return int(id)


def _wait_s(connection: Connection, key: AttemptKey, now_s: int) -> int:
    """Return the longer wait of the first two limits, in seconds."""
    window_s = _end_of_window_s(connection, "OLDEST_OF_ADDRESS", key, ADDRESS_FAILURES_MAX)
    return max(0, math.ceil(max(_end_of_pause_s(connection, key), window_s) - now_s))


def _wait_for_turn_s(connection: Connection, key: AttemptKey, now_s: int) -> int:
    """Return the time until the address's turn in the slow lane of the account, in seconds; 0 if this is its turn.

    The turns of an account are rows of another account, whose `at_s` may be in the future.
    """
    window = _end_of_window_s(connection, "OLDEST_OF_ACCOUNT", key, ACCOUNT_FAILURES_MAX)
    if window <= now_s or STATEMENTS.run(connection, "IS_EXEMPT", asdict(key)).fetchone() is not None:
        return 0
    lane = AttemptKey(hashlib.blake2b(key.account.encode(), digest_size=16, person=b"turns").hexdigest(), key.address)
    own_turn = {**asdict(lane), "since_s": now_s - TURN_VALID_S}
    row = STATEMENTS.run(connection, "TURN", own_turn).fetchone()
    if row is None:
        (last_s,) = STATEMENTS.run(connection, "LAST_TURN", asdict(lane)).fetchone()
        turn_s = max(now_s, int(last_s) + TURN_S)
        if turn_s > now_s + QUEUE_MAX_S:
            return turn_s - now_s
        _add(connection, lane, turn_s, is_success=False)
    else:
        turn_s = int(row[0])
    if turn_s <= now_s:
        STATEMENTS.run(connection, "USE_TURN", {**own_turn, "used": USED})
    return max(0, turn_s - now_s)


def _end_of_pause_s(connection: Connection, key: AttemptKey) -> int:
    """Return the end of the wait of an account and address, in seconds since 1970; 0 without a wait."""
    failures, last_s = STATEMENTS.run(connection, "FAILURES", asdict(key)).fetchone()
    if failures < FREE_FAILURES:
        return 0
    wait_s: int = min(WAIT_MAX_S, FIRST_WAIT_S * 2 ** (failures - FREE_FAILURES))
    return int(last_s) + wait_s


def _end_of_window_s(connection: Connection, statement: str, key: AttemptKey, failures_max: int) -> int:
    """Return the time from which the window has fewer than `failures_max` failures, in seconds since 1970; 0 if there
    are fewer failures in all."""
    row = STATEMENTS.run(connection, statement, {**asdict(key), "skipped": failures_max - 1}).fetchone()
    return 0 if row is None else int(row[0]) + WINDOW_S
