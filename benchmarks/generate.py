"""Generate a lake: hits on days before 2026-10-01, paths by a power law, people, AI agents and bots."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from api import data_folder, settings
from warehouse.hotlog import batches
from warehouse.maintenance import compact, load
from warehouse.query import engine
from warehouse.schema import HOT

END = datetime(2026, 10, 1, tzinfo=UTC)
_ROWS = """
SELECT $project AS project_id,
       make_timestamptz(epoch_us($start) + (random() * 86400e6)::BIGINT) AS ts,
       '/docs/' || floor($paths * pow(random(), 3))::INTEGER AS path,
       CASE WHEN kind < 6 THEN 'human' WHEN kind < 9 THEN 'ai' ELSE 'bot' END AS traffic,
       CASE WHEN kind BETWEEN 6 AND 8 THEN 'Agent' || (n % 10) END AS agent,
       CASE WHEN kind BETWEEN 6 AND 8 THEN 'Operator' || (n % 10) END AS operator,
       CASE WHEN kind BETWEEN 6 AND 8 THEN 'training' END AS purpose,
       'generated' AS rule, 'generated' AS ruleset,
       'Mozilla/5.0 (X11; Linux x86_64; rv:' || (100 + n % 50) || '.0) Gecko/20100101 Firefox/140.0' AS user_agent,
       'Firefox' AS browser, 'Linux' AS os, 'desktop' AS device,
       NULL::VARCHAR AS referrer, NULL::VARCHAR AS referrer_host, NULL::VARCHAR AS utm_source, NULL::VARCHAR AS format,
       200::SMALLINT AS status, 'log' AS source, NULL::VARCHAR AS event_id, $start AS received_at
FROM (SELECT n, (random() * 10)::INTEGER AS kind FROM range($rows) numbers(n))
"""


def fill(data: Path, project: str, rows: int, days: int, paths: int) -> None:
    """Append `rows` hits over `days` days to both tables, one load a day, and compact them."""
    config = settings.read({}, data)
    data_folder.prepare(config)
    database = engine.connect(config.run / "spill")
    hot = batches.connect(config.hot_log)
    for day in range(days):
        values = {"project": project, "start": END - timedelta(days=day + 1), "rows": rows // days, "paths": paths}
        hits = database.sql(_ROWS, params=values).to_arrow_table().cast(HOT)
        for batch in hits.to_batches(max_chunksize=100_000):
            batches.append(hot, pa.RecordBatch.from_arrays(batch.columns, schema=HOT), 0.0)
        load.load(hot, config.lake, wait_s=60)
    compact.compact(hot, config.lake, database, 1, wait_s=60)
    hot.close()
    database.close()
