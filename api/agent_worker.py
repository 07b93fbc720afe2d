"""The settings of a worker of agent jobs, for `serve` and for `readership worker`."""

from agent.worker.threads import WorkerConfig
from api import metrics
from api.settings import Settings
from warehouse.database.pool import Pool


def config(settings: Settings, control: Pool) -> WorkerConfig:
    """Return the part of the settings that a worker of agent jobs needs, with the functions that count its work."""
    return WorkerConfig(
        control,
        settings.jobs,
        settings.environ,
        settings.jobs_at_once,
        settings.job_lease_s,
        settings.job_retention_days,
        settings.lake.local,
        metrics.count_turn,
        metrics.count_delivery,
    )
