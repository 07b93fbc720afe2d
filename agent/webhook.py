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

import httpx
import sqlalchemy as sa

from agent import configuration, secret
from agent.errors import AgentError
from agent.job import Job, Status
from agent.tables import DELIVERIES
from warehouse.control import writing

RETRY_S = (5, 30, 120, 600, 1800, 3600, 7200, 14_400, 28_800)
"""Between attempts: the last is some 16 hours after the first."""
TIMEOUT_S = 10.0
CLAIMED_US = 60_000_000
"""For so long no other worker takes a message that one is sending."""
LOG = logging.getLogger("readership.agent")
SIGNED, ENCODED = "v1", "whsec_"
_US = 1_000_000


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
        chosen = configuration.of(connection, job.project)
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
        "id": f"msg_{secrets.token_hex(12)}",
        "project_id": job.project,
        "job_id": job.id,
        "body": json.dumps(body),
        "attempts": 0,
        "due_us": now_us,
    }
    connection.execute(DELIVERIES.insert().values(row))


def deliver(engine: sa.Engine, environ: Mapping[str, str], now_us: Callable[[], int]) -> bool:
    """Send the message that is due longest; whether there was one. At least once: a receiver knows it by its id."""
    claimed = _claim(engine, now_us())
    if claimed is None:
        return False
    reason = _send(engine, claimed, environ, now_us())
    is_over = reason is None or claimed.attempts >= len(RETRY_S)
    same = DELIVERIES.c.id == claimed.id
    with writing(engine) as connection:
        if is_over:
            connection.execute(DELIVERIES.delete().where(same))
        else:
            due_us = now_us() + RETRY_S[claimed.attempts] * _US
            connection.execute(DELIVERIES.update().where(same).values(due_us=due_us, attempts=claimed.attempts + 1))
    if reason is not None:
        after = "it is given up" if is_over else f"again in {RETRY_S[claimed.attempts]} s"
        LOG.warning("the webhook of project %s did not take %s: %s; %s", claimed.project_id, claimed.id, reason, after)
    return True


def _claim(engine: sa.Engine, now_us: int) -> sa.Row[tuple[object, ...]] | None:
    due = DELIVERIES.select().where(DELIVERIES.c.due_us <= now_us).order_by(DELIVERIES.c.due_us).limit(1)
    with engine.connect() as connection:
        if connection.execute(due).first() is None:
            return None
    with writing(engine) as connection:
        found = connection.execute(due.with_for_update(skip_locked=True)).first()
        if found is not None:
            same = DELIVERIES.c.id == found.id
            connection.execute(DELIVERIES.update().where(same).values(due_us=now_us + CLAIMED_US))
    return found


def _send(
    engine: sa.Engine, claimed: sa.Row[tuple[object, ...]], environ: Mapping[str, str], now_us: int
) -> str | None:
    """Why it was not taken; None if it was."""
    try:
        with engine.connect() as connection:
            chosen = configuration.of(connection, claimed.project_id)
        headers = signed(secret.resolve(chosen.webhook_secret, environ), claimed.id, now_us // _US, claimed.body)
    except AgentError as error:
        return str(error)
    except ValueError:
        return f"{chosen.webhook_secret} begins with {ENCODED}, and what follows is not base64"
    headers["Content-Type"] = "application/json"
    try:
        with (
            httpx.Client(timeout=TIMEOUT_S, trust_env=False) as client,
            client.stream("POST", chosen.webhook, content=claimed.body, headers=headers) as answer,
        ):  # its body is of no interest, and may be without end
            return None if answer.is_success else f"it answered {answer.status_code}"
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        return f"{type(error).__name__}: {error}"


def signed(key: str, id: str, now_s: int, body: str) -> dict[str, str]:
    """The headers that prove to who knows the key that the message is ours, and when it was sent."""
    binary = base64.b64decode(key.removeprefix(ENCODED)) if key.startswith(ENCODED) else key.encode()
    signature = hmac.digest(binary, f"{id}.{now_s}.{body}".encode(), "sha256")
    return {
        "webhook-id": id,
        "webhook-timestamp": str(now_s),
        "webhook-signature": f"{SIGNED},{base64.b64encode(signature).decode()}",
    }
