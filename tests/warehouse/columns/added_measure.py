"""Program that prints the sums of cells with another measure, `markdown`, which `test_measures` adds."""

import json
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.warehouse.rollups.writing import write_rollup
from tests.warehouse.site import DAY, NOON, Site, view
from warehouse.columns.filters import Filters
from warehouse.query.result_cache import ResultCache
from warehouse.query.snapshot import SnapshotReader
from warehouse.query.time_range import TimeRange
from warehouse.report import cells
from warehouse.report.statements import Statements
from warehouse.rollups import catalog, check
from warehouse.tables import HITS_TABLE

HOUR = timedelta(hours=1)
SCOPE = cells.Scope("site", TimeRange(datetime(2026, 9, 1, tzinfo=UTC), NOON), Filters())


def main() -> None:
    with closing(Site(Path("site"))) as site:
        markdown, html = {"format": "markdown", "status": 200}, {"format": "html"}
        site.post(view(ts=NOON - DAY, **markdown), view(ts=NOON - HOUR, **markdown), view(ts=NOON - HOUR, **html))
        site.post(view(ts=NOON - 10 * DAY, **html), view(ts=NOON + HOUR, **markdown))
        site.load()
        files = site.state(HITS_TABLE).files
        write_rollup(site.root, site.database, "2026-09", files)
        site.post(view(ts=NOON - HOUR, **markdown))
        with closing(SnapshotReader(site.hot_log, site.root)) as reader:
            snapshot = reader.take()
        covered = catalog.choose(site.root, files)
        statements = Statements(site.spill, ResultCache(1_000_000), lambda snapshot: covered, lambda: None)
        sums = {}
        for name in ("traffic", "path", "userAgent"):  # of totals, of another cube, and of `hits`
            chosen = cells.select(snapshot, covered, SCOPE, [name])
            sql = f"SELECT sum(views)::BIGINT AS views, sum(markdown)::BIGINT AS markdown FROM {chosen.sql}"
            sums[name] = statements.fetch(snapshot, SCOPE, chosen, sql).to_pylist()
        print(json.dumps([sums, [check.find_difference(site.database, part, files, {}) for part in covered.parts]]))


if __name__ == "__main__":
    main()
