"""Classification of the hits of a parsed chunk, and staging of the rows of a large chunk.

Staged rows are in Parquet files that no transaction names yet.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ingest.classification.user_agent_cache import UserAgentCache
from ingest.errors import LedgerIncomplete
from ingest.hits.hit import accepted_us
from ingest.hits.row import NO_SITE, Site
from ingest.imports.chunk import ParseResult
from ingest.imports.columns.asked import ASKED
from ingest.imports.dictionary import one_array
from ingest.imports.prepared import asset_loads, downloads, requests
from ingest.imports.prepared.downloads import Rows
from ingest.imports.rows import ViewCounts, lake_rows
from ingest.verification.verifier import Verifier
from ingest.visitors.visitor import SaltsOf, of_columns
from warehouse.hotlog import batches
from warehouse.hotlog.connection import HotConnection
from warehouse.lake.roots import Root
from warehouse.lake.staging import stage
from warehouse.tables import ASSET_LOADS_TABLE, EVENTS_TABLE, HITS_TABLE, REQUESTS_TABLE, Spec

STAGED_ROWS_MIN, STAGED_BYTES_MIN = 5_000, 4 * 1024 * 1024
"""Minimum sizes of a chunk whose rows are staged. The rows of a smaller chunk go through the hot log, like posted
hits."""


@dataclass(frozen=True, slots=True)
class Target:
    """Project and lake into which the rows of an import are stored. Other fields: see `importer.Options`."""

    root: Root
    project: str
    is_dry_run: bool
    ledger_from_us: int
    site: Site = NO_SITE


class Prepared(NamedTuple):
    """Rows of a chunk, by table or in staged files, and the numbers of its page views and errors."""

    views: ViewCounts
    errors: int
    rows: Rows


def prepare(
    target: Target,
    result: ParseResult,
    received_us: int,
    user_agents: UserAgentCache,
    verifier: Verifier,
    salts_of: SaltsOf,
) -> Prepared:
    """Return the rows of a chunk. Add the hits with a wrong time and the errors of people to the skipped lines of
    `result`.

    Raises:
        LedgerIncomplete: see `importer.Options.ledger_from_us`.
    """
    parsed, accepted = result.hits.unify_dictionaries().combine_chunks(), accepted_us(received_us)
    timely = _with_accepted_times(parsed, accepted)
    address, user_agent, ts_us = (one_array(timely[name]) for name in ("address", "user_agent", "ts_us"))
    timely = timely.append_column("visitor", of_columns(target.project, address, user_agent, ts_us, salts_of))
    pages, assets, files = asset_loads.split(timely)
    late = asset_loads.split(parsed)[0].num_rows - pages.num_rows if timely.num_rows < parsed.num_rows else 0
    hits, fetched = (
        lake_rows(target.project, each, received_us, user_agents, verifier, target.site, one_array(each["visitor"]))
        for each in (pages, downloads.with_slash(files))
    )
    result.skipped += Counter(not_a_page=parsed.num_rows - pages.num_rows - late, time=late, status=hits.skipped)
    for times in (hits.rows["ts"], fetched.rows["ts"], assets["ts_us"]):
        _require_covered(times, target.ledger_from_us)
    loads = asset_loads.asset_loads(target.project, assets)
    asked = _with_accepted_times(pa.concat_tables(result.requests or [ASKED.empty_table()]), accepted)
    result.requests = []  # a row for each line
    _require_covered(asked["ts_us"], target.ledger_from_us)
    counted = requests.rows(target.project, asked, user_agents)
    rows = {HITS_TABLE: hits.rows, ASSET_LOADS_TABLE: loads, REQUESTS_TABLE: counted}
    rows[EVENTS_TABLE] = pa.concat_tables(map(downloads.events, (hits.rows, fetched.rows)))
    size = sum(each.num_rows for each in rows.values()), sum(each.nbytes for each in rows.values())
    is_staged = (size[0] >= STAGED_ROWS_MIN or size[1] >= STAGED_BYTES_MIN) and not target.is_dry_run
    return Prepared(hits.views, hits.errors, stage(target.root, rows) if is_staged else rows)


def append(connection: HotConnection, rows: Mapping[Spec, pa.Table], now_s: float) -> None:
    """Add the rows of a small chunk to the hot log inside the caller's transaction."""
    for spec, table in rows.items():
        if table.num_rows:
            batches.append(connection, table.cast(spec.hot).combine_chunks().to_batches()[0], now_s, spec)


def _with_accepted_times(hits: pa.Table, accepted: range) -> pa.Table:
    times = pc.min_max(hits["ts_us"]).as_py()
    if times["min"] is None or (times["min"] in accepted and times["max"] in accepted):
        return hits
    return hits.filter((pc.field("ts_us") >= accepted.start) & (pc.field("ts_us") < accepted.stop))


def _require_covered(times: pa.ChunkedArray, ledger_from_us: int) -> None:
    """Raise LedgerIncomplete if a time is older than the ledger."""
    if ledger_from_us and len(times) and pc.min(times).cast(pa.int64()).as_py() < ledger_from_us:
        since = datetime.fromtimestamp(ledger_from_us / 1_000_000, UTC).isoformat(" ", "seconds")
        raise LedgerIncomplete(
            f"the record of logs imported before {since} is lost, and these lines are older: if they were imported "
            "before, they would be counted twice. Import the lines since then, or add --despite-loss if you know "
            "that these were never imported"
        )
