"""Jobs that have ended, in a project with a webhook."""

import base64

from agent.jobs import configuration, queue, store
from agent.jobs.queue import Outcome
from tests.agent.clock import SECOND_US, Clock
from tests.agent.conftest import PROJECT
from warehouse.database.pool import Pool

SECRETS = {"HOOK": "s3cret", "ENCODED": "whsec_" + base64.b64encode(b"s3cret").decode()}


def set_webhook(engine: Pool, url: str, secret: str = "env:HOOK", project: str = PROJECT) -> None:
    """Set the webhook of a project."""
    with engine.connect() as connection:
        config = configuration.load(connection, project)
    configuration.store(engine, project, configuration.changed(config, {"webhook": url, "webhook_secret": secret}))


def end_job(engine: Pool, clock: Clock, outcome: Outcome, project: str = PROJECT) -> str:
    """Create a job, run its turn, and return its id."""
    id = store.create(engine, project, "Fix it", None, clock()).job.id
    end_turn(engine, clock(), outcome)
    return id


def end_turn(engine: Pool, now_us: int, outcome: Outcome) -> None:
    """Claim and end the turn that has waited longest."""
    lease = queue.claim(engine, "worker", now_us, SECOND_US)
    assert lease is not None
    queue.finish(engine, lease, outcome, now_us)
