"""Messages to a project's webhook about jobs that are no longer active, delivered at least once.

A message is inserted in the transaction that ends the job's activity. It is signed as Standard Webhooks specifies
(https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md): HMAC-SHA256 of
`id.timestamp.body`, in base64.
"""

import base64
import hmac
import json
import logging
import secrets
from collections.abc import Callable, Mapping
from typing import Literal

import httpx
import msgspec
import sqlalchemy as sa

from agent.deadline import run_with_deadline
from agent.errors import AgentError, NotConfigured
from agent.jobs import configuration, job_json, secret_ref
from agent.jobs.job import Job
from agent.jobs.tables import DELIVERIES
from warehouse.control.database import transaction

RETRY_S = (5, 30, 120, 600, 1800, 3600, 7200, 14_400, 28_800)
"""Seconds between attempts; the last attempt is about 16 hours after the first."""
TIMEOUT_S = 10.0
"""Deadline of a whole attempt, from the DNS lookup to the last response header, in seconds."""
CLAIM_US = 60_000_000
"""Microseconds for which a message that is being sent is not due for other processes."""
NO_WEBHOOK = "the project no longer has a webhook"
LOG = logging.getLogger("readership.agent")
SIGNATURE_VERSION, BASE64_PREFIX = "v1", "whsec_"
ID_PREFIX, TIME_DIGITS = "msg_", 14
_US = 1_000_000

Outcome = Literal["delivered", "failed", "given_up"]
"""Outcome of an attempt. A message that `failed` is sent again; one that is `given_up` is deleted."""


def enqueue(connection: sa.Connection, job: Job, now_us: int) -> None:
    """Insert a message with the job's present state in the caller's transaction, if the project has a webhook."""
    try:
        config = configuration.load(connection, job.project)
    except AgentError:  # the operator has removed the configuration
        return
    if not config.webhook:
        return
    body = {
        "type": f"job.{job.status}",
        "timestamp": job_json.timestamp(now_us),
        "data": {"projectId": job.project, "job": msgspec.to_builtins(job_json.from_job(job)), "reason": job.reason},
    }
    row = {"id": _next_id(connection, job, now_us), "project_id": job.project, "job_id": job.id}
    connection.execute(DELIVERIES.insert().values(row | {"body": json.dumps(body), "attempts": 0, "due_us": now_us}))


def _next_id(connection: sa.Connection, job: Job, now_us: int) -> str:
    """Return an id greater than those of the job's other messages, even if the clocks of two machines differ.

    The caller has locked the job.
    """
    latest = connection.execute(sa.select(sa.func.max(DELIVERIES.c.id)).where(DELIVERIES.c.job_id == job.id)).scalar()
    after_us = int(latest.removeprefix(ID_PREFIX)[:TIME_DIGITS], 16) + 1 if latest else 0
    return f"{ID_PREFIX}{max(now_us, after_us):0{TIME_DIGITS}x}{secrets.token_hex(6)}"


def due(engine: sa.Engine, now_us: int) -> list[str]:
    """Return the projects with a due message; the project with the oldest message is first."""
    projects = _due(now_us).with_only_columns(DELIVERIES.c.project_id).group_by(DELIVERIES.c.project_id)
    with engine.connect() as connection:
        return list(connection.execute(projects.order_by(None).order_by(sa.func.min(DELIVERIES.c.due_us))).scalars())


def deliver(
    engine: sa.Engine, project: str, environ: Mapping[str, str], now_us: Callable[[], int], timeout_s: float = TIMEOUT_S
) -> Outcome | None:
    """Send the project's oldest due message once; return None if no message is due.

    A message may be sent more than once, with the same id. The messages of one job are sent in order: a message waits
    until the ones before it are delivered or given up.
    """
    claimed = _claim(engine, project, now_us())
    if claimed is None:
        return None
    reason = _send(engine, claimed, environ, now_us(), timeout_s)
    is_over = reason in (None, NO_WEBHOOK) or claimed.attempts >= len(RETRY_S)
    is_message = DELIVERIES.c.id == claimed.id
    with transaction(engine) as connection:
        if is_over:
            connection.execute(DELIVERIES.delete().where(is_message))
        else:
            due_us = now_us() + RETRY_S[claimed.attempts] * _US
            connection.execute(
                DELIVERIES.update().where(is_message).values(due_us=due_us, attempts=claimed.attempts + 1)
            )
    if reason is None:
        return "delivered"
    consequence = "there are no more attempts" if is_over else f"retrying in {RETRY_S[claimed.attempts]} s"
    LOG.warning("cannot deliver %s to the webhook of project %s: %s; %s", claimed.id, project, reason, consequence)
    return "given_up" if is_over else "failed"


def _due(now_us: int) -> sa.Select[tuple[object, ...]]:
    earlier = DELIVERIES.alias("earlier")
    is_blocked = sa.exists().where(earlier.c.job_id == DELIVERIES.c.job_id, earlier.c.id < DELIVERIES.c.id)
    return DELIVERIES.select().where(DELIVERIES.c.due_us <= now_us, ~is_blocked).order_by(DELIVERIES.c.due_us)


def _claim(engine: sa.Engine, project: str, now_us: int) -> sa.Row[tuple[object, ...]] | None:
    """Return the project's oldest due message and make it due again after CLAIM_US, in case this process dies."""
    oldest = _due(now_us).where(DELIVERIES.c.project_id == project).limit(1)
    with transaction(engine) as connection:
        row = connection.execute(oldest.with_for_update(skip_locked=True, of=DELIVERIES)).first()
        if row is not None:
            is_message = DELIVERIES.c.id == row.id
            connection.execute(DELIVERIES.update().where(is_message).values(due_us=now_us + CLAIM_US))
    return row


def _send(
    engine: sa.Engine, claimed: sa.Row[tuple[object, ...]], environ: Mapping[str, str], now_us: int, timeout_s: float
) -> str | None:
    """Send a message; return None if it was delivered, else the reason why not."""
    try:
        with engine.connect() as connection:
            config = configuration.load(connection, claimed.project_id)
        if not config.webhook:
            return NO_WEBHOOK
        key = secret_ref.resolve(config.webhook_secret, environ)
        headers = signature_headers(key, claimed.id, now_us // _US, claimed.body)
    except AgentError as error:
        return NO_WEBHOOK if isinstance(error, NotConfigured) else str(error)
    except ValueError:
        return f"{config.webhook_secret} begins with {BASE64_PREFIX}, but the rest is not base64"
    headers["Content-Type"] = "application/json"
    try:
        status = run_with_deadline(timeout_s, lambda: _post(config.webhook, claimed.body, headers))
    except TimeoutError:
        return f"it did not answer within {timeout_s:g} s"
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return None if httpx.codes.is_success(status) else f"it answered {status}"


async def _post(url: str, body: str, headers: Mapping[str, str]) -> int:
    """Return the status of the response without reading its body, which may be endless. Raises httpx's errors."""
    async with (
        httpx.AsyncClient(timeout=None, trust_env=False) as client,  # noqa: S113  # `run_with_deadline` has the deadline
        client.stream("POST", url, content=body, headers=headers) as response,
    ):
        return response.status_code


def signature_headers(key: str, id: str, now_s: int, body: str) -> dict[str, str]:
    """Return the headers with the id, the time and the signature of a message.

    Raises:
        ValueError: the key begins with BASE64_PREFIX and the rest is not base64.
    """
    binary = base64.b64decode(key.removeprefix(BASE64_PREFIX)) if key.startswith(BASE64_PREFIX) else key.encode()
    signature = hmac.digest(binary, f"{id}.{now_s}.{body}".encode(), "sha256")
    return {
        "webhook-id": id,
        "webhook-timestamp": str(now_s),
        "webhook-signature": f"{SIGNATURE_VERSION},{base64.b64encode(signature).decode()}",
    }
