"""A project's webhook: told when a job leaves active, until it has taken the message, whoever is killed meanwhile.

The message is written in the transaction that ends the turn. Signed as Standard Webhooks has it
(https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md), so that its libraries
can check it: HMAC-SHA256 of `id.timestamp.body`, in base64.
"""

import base64
import hmac
import json
import logging
import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Literal

import httpx
import sqlalchemy as sa

from agent.deadline import run_with_deadline
from agent.errors import AgentError
from agent.jobs import configuration, secret_ref
from agent.jobs.job import Job, Status
from agent.jobs.tables import DELIVERIES
from warehouse.control.database import transaction

RETRY_S = (5, 30, 120, 600, 1800, 3600, 7200, 14_400, 28_800)
"""Between attempts: the last is some 16 hours after the first."""
LIMIT_S = 10.0
"""Of a whole attempt, from the look-up of the host to the last header: a receiver may be slow in any of it."""
CLAIMED_US = 60_000_000
"""For so long no other worker takes a message that one is sending."""
TAKEN_AWAY = "the project has none any more"
LOG = logging.getLogger("readership.agent")
SIGNED, ENCODED = "v1", "whsec_"
ID, TIME_DIGITS = "msg_", 14
_US = 1_000_000

Outcome = Literal["delivered", "failed", "given_up"]
"""Of an attempt: `failed` is followed by another, `given_up` by none."""


def shown(job: Job) -> dict[str, object]:
    """A job as the contract has it."""
    is_active = job.status is Status.ACTIVE
    return {
        "id": job.id,
        "status": str(job.status),
        "source": {"repository": job.repository, "ref": job.ref},
        "model": job.model,
        "prLink": None if is_active else job.pull_request,
        "createdAt": instant(job.created_us),
        "archivedAt": None if job.archived_us is None else instant(job.archived_us),
    }


def instant(us: int) -> str:
    """An RFC 3339 time in UTC, to the millisecond."""
    return datetime.fromtimestamp(us / _US, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def tell(connection: sa.Connection, job: Job, now_us: int) -> None:
    """Note, in the caller's transaction, that the project's webhook is to be told of the job as it is now."""
    try:
        chosen = configuration.load(connection, job.project)
    except AgentError:  # the operator took the configuration away meanwhile
        return
    if not chosen.webhook:
        return
    body = {
        "type": f"job.{job.status}",
        "timestamp": instant(now_us),
        "data": {"projectId": job.project, "job": shown(job), "reason": job.reason},
    }
    row = {
        "id": _id_after_others(connection, job, now_us),
        "project_id": job.project,
        "job_id": job.id,
        "body": json.dumps(body),
        "attempts": 0,
        "due_us": now_us,
    }
    connection.execute(DELIVERIES.insert().values(row))


def _id_after_others(connection: sa.Connection, job: Job, now_us: int) -> str:
    """By ids a job's messages are in order, also of machines whose clocks do not agree; the caller holds the job."""
    latest = connection.execute(sa.select(sa.func.max(DELIVERIES.c.id)).where(DELIVERIES.c.job_id == job.id)).scalar()
    after_us = int(latest.removeprefix(ID)[:TIME_DIGITS], 16) + 1 if latest else 0
    return f"{ID}{max(now_us, after_us):0{TIME_DIGITS}x}{secrets.token_hex(6)}"


def due(engine: sa.Engine, now_us: int) -> list[str]:
    """The projects that are to be told something now, the one that has waited longest first."""
    longest = _due(now_us).with_only_columns(DELIVERIES.c.project_id).group_by(DELIVERIES.c.project_id)
    with engine.connect() as connection:
        return list(connection.execute(longest.order_by(None).order_by(sa.func.min(DELIVERIES.c.due_us))).scalars())


def deliver(
    engine: sa.Engine, project: str, environ: Mapping[str, str], now_us: Callable[[], int], limit_s: float = LIMIT_S
) -> Outcome | None:
    """Send the project's message that is due longest; None if none is. At least once: a receiver knows it by its id.

    A job's messages are in order: one waits until those before it are taken or given up.
    """
    claimed = _claim(engine, project, now_us())
    if claimed is None:
        return None
    reason = _send(engine, claimed, environ, now_us(), limit_s)
    is_over = reason in (None, TAKEN_AWAY) or claimed.attempts >= len(RETRY_S)
    same = DELIVERIES.c.id == claimed.id
    with transaction(engine) as connection:
        if is_over:
            connection.execute(DELIVERIES.delete().where(same))
        else:
            due_us = now_us() + RETRY_S[claimed.attempts] * _US
            connection.execute(DELIVERIES.update().where(same).values(due_us=due_us, attempts=claimed.attempts + 1))
    if reason is None:
        return "delivered"
    after = "it is given up" if is_over else f"again in {RETRY_S[claimed.attempts]} s"
    LOG.warning("the webhook of project %s did not take %s: %s; %s", project, claimed.id, reason, after)
    return "given_up" if is_over else "failed"


def _due(now_us: int) -> sa.Select[tuple[object, ...]]:
    earlier = DELIVERIES.alias("earlier")
    is_second = sa.exists().where(earlier.c.job_id == DELIVERIES.c.job_id, earlier.c.id < DELIVERIES.c.id)
    return DELIVERIES.select().where(DELIVERIES.c.due_us <= now_us, ~is_second).order_by(DELIVERIES.c.due_us)


def _claim(engine: sa.Engine, project: str, now_us: int) -> sa.Row[tuple[object, ...]] | None:
    first = _due(now_us).where(DELIVERIES.c.project_id == project).limit(1)
    with transaction(engine) as connection:
        found = connection.execute(first.with_for_update(skip_locked=True, of=DELIVERIES)).first()
        if found is not None:
            same = DELIVERIES.c.id == found.id
            connection.execute(DELIVERIES.update().where(same).values(due_us=now_us + CLAIMED_US))
    return found


def _send(
    engine: sa.Engine, claimed: sa.Row[tuple[object, ...]], environ: Mapping[str, str], now_us: int, limit_s: float
) -> str | None:
    """Why it was not taken; None if it was."""
    try:
        with engine.connect() as connection:
            chosen = configuration.load(connection, claimed.project_id)
        if not chosen.webhook:
            return TAKEN_AWAY
        headers = signed(secret_ref.resolve(chosen.webhook_secret, environ), claimed.id, now_us // _US, claimed.body)
    except AgentError as error:
        return str(error)
    except ValueError:
        return f"{chosen.webhook_secret} begins with {ENCODED}, and what follows is not base64"
    headers["Content-Type"] = "application/json"
    try:
        status = run_with_deadline(limit_s, lambda: _post(chosen.webhook, claimed.body, headers))
    except TimeoutError:
        return f"it did not answer within {limit_s:g} s"
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return None if httpx.codes.is_success(status) else f"it answered {status}"


async def _post(url: str, body: str, headers: Mapping[str, str]) -> int:
    """The answer's status; its body is of no interest, and may be without end. Raises httpx's errors."""
    async with (
        httpx.AsyncClient(timeout=None, trust_env=False) as client,  # noqa: S113  # see `run_with_deadline`
        client.stream("POST", url, content=body, headers=headers) as answer,
    ):
        return answer.status_code


def signed(key: str, id: str, now_s: int, body: str) -> dict[str, str]:
    """The headers that prove to who knows the key that the message is ours, and when it was sent."""
    binary = base64.b64decode(key.removeprefix(ENCODED)) if key.startswith(ENCODED) else key.encode()
    signature = hmac.digest(binary, f"{id}.{now_s}.{body}".encode(), "sha256")
    return {
        "webhook-id": id,
        "webhook-timestamp": str(now_s),
        "webhook-signature": f"{SIGNED},{base64.b64encode(signature).decode()}",
    }
