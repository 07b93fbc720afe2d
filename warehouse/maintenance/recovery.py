"""Recovery of a data folder that lost a store or part of a table: list what is lost, and accept the loss.

A service refuses to start in such a folder. Each step of the recovery can be repeated, and only the last one ends the
refusal: after an interruption the folder is still refused.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import duckdb
import pyarrow as pa

from warehouse.columns.hits import NEW_VALUES
from warehouse.control import database as control
from warehouse.database.transaction import transaction
from warehouse.hotlog import batches, loads
from warehouse.hotlog.connection import STATEMENTS, HotConnection, HotLogPlace
from warehouse.integrity import completeness, durability
from warehouse.lake import delta_table, registry, staging
from warehouse.lake.registry import HotLogRecord
from warehouse.lake.roots import Root
from warehouse.query import engine
from warehouse.schema import HOT
from warehouse.tables import EVENTS_TABLE, HITS_TABLE, TABLES, Spec

_UNLOADED = """
SELECT waiting.* FROM waiting ANTI JOIN {hits} AS hits USING (project_id, ts, path, user_agent, received_at)
"""
_EVENT_IDS = """
SELECT 'hit', project_id, source, event_id, epoch(max(received_at))::BIGINT FROM {hits}
WHERE event_id IS NOT NULL AND received_at > $since GROUP BY ALL
UNION ALL SELECT 'event', project_id, source, event_id, epoch(max(ts))::BIGINT FROM {events}
WHERE event_id IS NOT NULL AND ts > $since GROUP BY ALL
"""
_VALUES = f"""
WITH hits AS (
  UNPIVOT (SELECT project_id, date, {", ".join(NEW_VALUES)} FROM {{files}} WHERE date >= $since)
  ON {", ".join(NEW_VALUES)} INTO NAME name VALUE text),
frequent AS (
  SELECT project_id, name, md5_number_lower(text) AS number, max(date) AS last FROM hits
  GROUP BY project_id, name, number
  QUALIFY row_number() OVER (PARTITION BY project_id, name ORDER BY count(*) DESC, last DESC, number) <= $most)
SELECT project_id, name, any_value(text), any_value(last) - DATE '1970-01-01'
FROM (SELECT *, md5_number_lower(text) AS number FROM hits) JOIN frequent USING (project_id, name, number)
GROUP BY project_id, name, number
"""
"""Texts are ranked by numbers, 64 bits of their MD5: sorted themselves, 200,000 long paths needed too much memory."""
VALUES_MEMORY_LIMIT = "512MB"
"""Memory of the database of `recent_values`. Files of older releases have row groups that take 270 MB."""
_CHUNK = 10_000
"""Number of rows that are read at once."""

EventIds = Iterator[list[tuple[str, str, str, str, int]]]
"""Lists of kind (`hit` or `event`), project, source, event id, and its last time in seconds since 1970: when a hit was
received, or when an event happened, because `events` has no other time."""
RecentValues = Iterator[list[tuple[str, str, str, int]]]
"""Lists of project, column, text, and last day of a hit with that text in days since 1970."""

_LOST_HOT_LOG = (
    "hits that were accepted and not yet loaded into the lake; the record of imported logs; Idempotency-Keys and the "
    "event ids of errors of the last seven days"
)
_ACCEPTING_HOT_LOG = (
    "batch ids go on above those of the lake; event ids of the last seven days are read from the lake; an import "
    "refuses lines that are older than now, because the same log may have been imported before; every other hot log of "
    "the lake is refused from now on"
)
_LOST_CONTROL = (
    "projects, API keys, agent jobs and their logs that are not in the control database as it is now; the record of "
    "imported logs, if that database has another secret"
)
_ACCEPTING_CONTROL = (
    "the control database as it is now, or a new one, is used from now on; projects that are created again under their "
    "ids have their hits; every sender needs a new key; if the secret is another one, an import refuses lines that are "
    "older than the last import before the loss"
)
_LOST_TABLE = (
    "hits that the table lacks and that the hot log has deleted; importing their logs again does not bring them back, "
    "because the hot log has recorded the lines as read"
)
_ACCEPTING_TABLE = (
    "the table is used as it is from now on, a missing one is created empty; its first broken commit and all later "
    "ones are set aside as *.broken; next: readership recover once more, then readership rebuild"
)


@dataclass(frozen=True, slots=True)
class Loss:
    """A store that lacks data: its fault, what is lost with it, and what accepting the loss does."""

    store: str
    fault: str
    lost: str
    accepting: str


def losses(hot_log: HotLogPlace, root: Root, database_url: str) -> list[Loss]:
    """Return what is lost in a data folder. Nothing is changed.

    If tables lack data, only their losses are returned: the other stores are compared with complete tables.

    Raises:
        DataIncomplete: the hot log is damaged. The operator must first move the file out of the folder.
        ControlUnreadable: the control database is damaged. The operator must first move its file out of the folder.
    """
    completeness.require_whole(hot_log)
    if losses_of_tables := table_losses(hot_log, root):
        return losses_of_tables
    # The lake is read first: in the other order, hits that a service posts and loads in between would seem to be lost.
    has_files, records, record = completeness.has_files(root), registry.hot_logs(root), registry.control(root)
    tables = completeness.open_tables(root)
    hot, identity = completeness.read_identity(hot_log), control.read_identity(database_url)
    control_fault = completeness.control_fault(identity, record, has_files or hot.last_id > 0)
    hot_log_fault = completeness.identity_fault(hot, records, has_files) or completeness.older_fault(hot, tables)
    result = []
    if hot_log_fault is not None:
        result.append(Loss(str(hot_log), hot_log_fault, _LOST_HOT_LOG, _ACCEPTING_HOT_LOG))
    if control_fault is not None:
        result.append(Loss(identity.name, control_fault, _LOST_CONTROL, _ACCEPTING_CONTROL))
    return result


def table_losses(hot_log: HotLogPlace, root: Root) -> list[Loss]:
    """Return the losses of the tables: what is missing according to the hot log, or, without a hot log, broken commits.

    The hot log is not changed.

    Raises:
        StoreTooNew: a newer release wrote the hot log.
    """
    if completeness.read_identity(hot_log).node is None:
        is_used = completeness.has_files(root) or registry.hot_logs(root)
        faults = durability.find_broken_logs(root) if is_used else {}
    else:
        with closing(batches.open_only(hot_log)) as hot:
            faults = durability.find_losses(hot, root)
    return [Loss(str(root / name), fault, _LOST_TABLE, _ACCEPTING_TABLE) for name, fault in faults.items()]


def accept_hot_log(hot: HotConnection, root: Root, database: duckdb.DuckDBPyConnection, now: datetime) -> None:
    """Register a hot log, which may be new, with the lake. The caller has restored its event ids (see `event_ids`).

    The hot logs that were registered before are refused from now on: a vacuum deletes staged files that only they name.

    The order matters. The moments come first, because the registration ends the refusal of a new hot log. The batch ids
    come last, because they end the refusal of an older hot log.
    """
    durability.create_tables(hot, root, is_locked=True)  # an older release may have left the lake
    node = batches.node_id(hot)
    with transaction(hot):
        # A lost hot log had fewer generations than seconds since 1970.
        STATEMENTS.run(hot, "RAISE_GENERATION", {"generation": int(now.timestamp())})
        loads.revoke_moments(hot)
    for record in registry.hot_logs(root).values():
        if record.node != node and not record.is_given_up:
            registry.record_hot_log(root, HotLogRecord(record.node, record.ledger_from_s, is_given_up=True))
    registry.record_hot_log(root, HotLogRecord(node, ledger_from_s=now.timestamp()))
    offsets = {spec.name: delta_table.offset(delta_table.open_table(root, spec), node) for spec in TABLES}
    for spec in TABLES:
        if offsets[spec.name] < offsets["hits"]:  # the rows of the batches in between are lost
            delta_table.append(delta_table.open_table(root, spec), spec.schema.empty_table(), node, offsets["hits"])
    unloaded = _unloaded(hot, root, database, offsets["hits"])
    with transaction(hot):
        batches.continue_above(hot, max(offsets.values()))
        if unloaded.num_rows:
            batches.append(hot, unloaded, now.timestamp())


def _unloaded(hot: HotConnection, root: Root, database: duckdb.DuckDBPyConnection, offset: int) -> pa.RecordBatch:
    """Return the waiting hits that are not in the lake although the lake already has their batch ids.

    They were accepted after an older copy of the hot log had been restored. Rows in staged files are left out, and
    counts, such as of errors, too: they do not show whether a request is among them.
    """
    rows = [batch.rows for batch in batches.waiting(hot) if batch.id <= offset and batch.spec is HITS_TABLE]
    with database.cursor() as cursor:
        cursor.register("waiting", staging.divide({HITS_TABLE: pa.Table.from_batches(rows, HOT)})[HITS_TABLE])
        unloaded = cursor.sql(_UNLOADED.format(hits=_rows(root))).to_arrow_table()
    return pa.RecordBatch.from_pylist(unloaded.to_pylist(), HOT)


def accept_control(database_url: str, root: Root) -> None:
    """Register the control database as it is, or a new one, with the lake."""
    control.connect(database_url).close()
    completeness.register_control(control.read_identity(database_url), root)


def event_ids(root: Root, database: duckdb.DuckDBPyConnection, since: datetime) -> EventIds:
    """Yield the event ids of hits and events in the lake with a time after `since`: see `EventIds`."""
    sql = _EVENT_IDS.format(hits=_rows(root, HITS_TABLE), events=_rows(root, EVENTS_TABLE))
    with database.cursor() as cursor:
        yield from _chunks(cursor.execute(sql, {"since": since}))


def recent_values(root: Root, database: duckdb.DuckDBPyConnection, since: date, most: int) -> RecentValues:
    """Yield the texts of the columns NEW_VALUES of hits in the lake since a day.

    Each project has at most `most` texts of a column: those with most hits, the latest first.
    """
    files = _rows(root, since=since)
    with database.cursor() as cursor:
        yield from _chunks(cursor.execute(_VALUES.format(files=files), {"since": since, "most": most}))


def _chunks(rows: duckdb.DuckDBPyConnection) -> Iterator[list[Any]]:
    while chunk := rows.fetchmany(_CHUNK):
        yield chunk


def _rows(root: Root, spec: Spec = HITS_TABLE, since: date = date.min) -> str:
    """Return the subquery of the rows of a table since a day."""
    files = delta_table.list_files(delta_table.open_table(root, spec), spec)
    recent = [file for file in files if file.partition >= f"{since}"]
    return engine.rows(spec, recent) if recent else engine.no_rows(spec)
