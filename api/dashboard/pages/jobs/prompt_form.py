"""A posted prompt, which starts a job or continues one, under the rules of the API."""

import re
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from agent.errors import IdempotencyMismatch, JobArchived, NotConfigured, QuotaExceeded
from agent.jobs import quota
from agent.jobs.job import PROMPT_BYTES_MAX, Job, prompt_fault
from agent.jobs.quota import USES_MAX
from agent.jobs.store import QueuedPrompt
from api.dashboard.web.forms import Refusal
from api.dashboard.web.visit import ProjectVisit
from api.http import problems
from api.http.problems import KINDS, Problem
from api.routes import prompts

_KEY = re.compile(r"[A-Za-z0-9_-]{22}")
_REPEATED = "This form has sent another prompt already. Send it again if you want to send this prompt, too."


class Remaining(NamedTuple):
    """Number of prompts that are left of `maximum` in an hour, and the time at which the number grows."""

    left: int
    next_at: datetime | None
    maximum: int = USES_MAX


def new_key() -> str:
    """Return the Idempotency-Key of a form: if the form is sent twice, its prompt is queued once."""
    return secrets.token_urlsafe(16)


def remaining(visit: ProjectVisit) -> dict[str, Remaining]:
    """Return the prompts that the project of a visit may still send, by operation."""
    quotas = quota.quotas(visit.state.control, visit.project.id, now_us(visit))
    grow_at = {each: visit.now + timedelta(seconds=each.reset_s) for each in quotas if each.remaining < USES_MAX}
    return {each.operation: Remaining(each.remaining, grow_at.get(each)) for each in quotas}


def submit(visit: ProjectVisit, enqueue: Callable[[str, str, int], QueuedPrompt]) -> Job | Refusal:
    """Queue the posted prompt, and return its job. `enqueue` has the parameters prompt, Idempotency-Key and time.

    Raises:
        Problem: `invalid-body`, for a form without its key.
        JobNotFound, ProjectNotFound
    """
    key, prompt = _key(visit), _prompt(visit)
    if visit.form.faults:
        return Refusal(422)
    try:
        queued = enqueue(prompt, key, now_us(visit))
    except QuotaExceeded as error:
        return _refusal(prompts.rate_limited(error), visit, _exhausted(error, visit))
    except IdempotencyMismatch as error:
        return _refusal(problems.of(visit.request, error), visit, _REPEATED)
    except (JobArchived, NotConfigured) as error:
        problem = problems.of(visit.request, error)
        return _refusal(problem, visit, problem.detail)
    visit.state.background.agents.wake()
    return queued.job


def now_us(visit: ProjectVisit) -> int:
    """Return the time of the visit in microseconds since 1970."""
    return round(visit.now.timestamp() * 1_000_000)


def _key(visit: ProjectVisit) -> str:
    key = visit.form.values.get("key", "")
    if _KEY.fullmatch(key) is None:
        raise Problem("invalid-body", "the form is incomplete: open the page again")
    return key


def _prompt(visit: ProjectVisit) -> str:
    """Return the prompt with the line ends of the API: browsers send CRLF."""
    visit.form.values["prompt"] = visit.form.values.get("prompt", "").replace("\r\n", "\n")
    prompt = visit.form.text("prompt", PROMPT_BYTES_MAX)
    fault = prompt_fault(prompt)
    if fault is not None:
        visit.form.fault("prompt", f"The prompt {fault}.")
    return prompt


def _exhausted(error: QuotaExceeded, visit: ProjectVisit) -> str:
    what = "new jobs" if error.operation == "create" else "messages"
    minutes = -(-error.reset_s // 60)
    return f"All {USES_MAX} {what} of this hour are used up. Try again in {minutes} min."


def _refusal(problem: Problem, visit: ProjectVisit, reason: str) -> Refusal:
    visit.form.fault("prompt", reason)
    return Refusal(KINDS[problem.kind].status, dict(problem.headers))
