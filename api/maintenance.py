"""The maintenance thread of a process: its plan and its metrics."""

from functools import partial

from api import metrics
from api.settings import Settings
from ingest.hotlog import deduplication, ledger_store
from ingest.visitors import salts
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
