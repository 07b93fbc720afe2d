"""The work beside the requests: the settings of the maintenance thread and of the worker of agent jobs."""

from functools import partial

from agent.worker.threads import WorkerConfig
from api import metrics
from api.settings import Settings
from ingest.hotlog import deduplication, ledger_store
from ingest.visitors import salts
from warehouse.database.pool import Pool
from warehouse.maintenance.scheduler import Plan, Scheduler


def open_scheduler(settings: Settings) -> Scheduler:
    """Return the maintenance thread, which the caller starts and closes."""
    plan = Plan(
        settings.hot_log,
        settings.lake,
        settings.run,
        settings.load_rows,
        settings.load_every_s,
        settings.retention_days,
        deduplication.delete_expired,
        ledger_store.delete_before,
        partial(salts.delete_expired, settings.database_url, settings.data),
        metrics.count_load,
        metrics.count_failure,
    )
    return Scheduler(plan)


def worker_config(settings: Settings, control: Pool) -> WorkerConfig:
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
