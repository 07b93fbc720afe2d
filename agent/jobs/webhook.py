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
from typing import Literal, NamedTuple

import httpx
import msgspec

from agent.errors import AgentError, NotConfigured
from agent.jobs import configuration, job_json, secret_ref
from agent.jobs.job import Job
from agent.jobs.tables import STATEMENTS
from agent.retry import run_with_deadline
from warehouse.database.pool import Pool
from warehouse.database.statements import Connection

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


class _Message(NamedTuple):
    """A message that this process sends."""

    id: str
    project: str
    body: str
    attempts: int


def enqueue(connection: Connection, job: Job, now_us: int) -> None:
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
    row = {"id": _next_id(connection, job, now_us), "project": job.project, "job": job.id}
    STATEMENTS.run(connection, "ADD_MESSAGE", {**row, "body": json.dumps(body), "now_us": now_us})


def _next_id(connection: Connection, job: Job, now_us: int) -> str:
    """Return an id greater than those of the job's other messages, even if the clocks of two machines differ.

    The caller has locked the job.
    """
    (latest,) = STATEMENTS.run(connection, "LAST_MESSAGE", {"job": job.id}).fetchone()
    after_us = int(latest.removeprefix(ID_PREFIX)[:TIME_DIGITS], 16) + 1 if latest else 0
    return f"{ID_PREFIX}{max(now_us, after_us):0{TIME_DIGITS}x}{secrets.token_hex(6)}"


def due(control: Pool, now_us: int) -> list[str]:
    """Return the projects with a due message; the project with the oldest message is first."""
    with control.connect() as connection:
        return [project for (project,) in STATEMENTS.run(connection, "DUE_PROJECTS", {"now_us": now_us})]


def deliver(
    control: Pool, project: str, environ: Mapping[str, str], now_us: Callable[[], int], timeout_s: float = TIMEOUT_S
) -> Outcome | None:
    """Send the project's oldest due message once; return None if no message is due.

    A message may be sent more than once, with the same id. The messages of one job are sent in order: a message waits
    until the ones before it are delivered or given up.
    """
    claimed = _claim(control, project, now_us())
    if claimed is None:
        return None
    reason = _send(control, claimed, environ, now_us(), timeout_s)
    is_over = reason in (None, NO_WEBHOOK) or claimed.attempts >= len(RETRY_S)
    with control.transaction() as connection:
        if is_over:
            STATEMENTS.run(connection, "DELETE_MESSAGE", {"id": claimed.id})
        else:
            _delay(connection, claimed.id, now_us() + RETRY_S[claimed.attempts] * _US, claimed.attempts + 1)
    if reason is None:
        return "delivered"
    consequence = "there are no more attempts" if is_over else f"retrying in {RETRY_S[claimed.attempts]} s"
    LOG.warning("cannot deliver %s to the webhook of project %s: %s; %s", claimed.id, project, reason, consequence)
    return "given_up" if is_over else "failed"


def _claim(control: Pool, project: str, now_us: int) -> _Message | None:
    """Return the project's oldest due message and make it due again after CLAIM_US, in case this process dies."""
    with control.transaction() as connection:
        row = STATEMENTS.run(connection, "LOCK_DUE_MESSAGE", {"project": project, "now_us": now_us}).fetchone()
        if row is None:
            return None
        message = _Message(*row)
        _delay(connection, message.id, now_us + CLAIM_US, message.attempts)
    return message


def _delay(connection: Connection, id: str, due_us: int, attempts: int) -> None:
    STATEMENTS.run(connection, "DELAY_MESSAGE", {"id": id, "due_us": due_us, "attempts": attempts})


def _send(control: Pool, claimed: _Message, environ: Mapping[str, str], now_us: int, timeout_s: float) -> str | None:
    """Send a message; return None if it was delivered, else the reason why not."""
    try:
        with control.connect() as connection:
            config = configuration.load(connection, claimed.project)
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
    """Return the headers with the id, the time and the signature of a message. Raises ValueError for a bad key."""
    binary = base64.b64decode(key.removeprefix(BASE64_PREFIX)) if key.startswith(BASE64_PREFIX) else key.encode()
    signature = hmac.digest(binary, f"{id}.{now_s}.{body}".encode(), "sha256")
    return {
        "webhook-id": id,
        "webhook-timestamp": str(now_s),
        "webhook-signature": f"{SIGNATURE_VERSION},{base64.b64encode(signature).decode()}",
    }
