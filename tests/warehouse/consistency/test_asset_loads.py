"""Loads of assets are stored once in `asset_loads`, through crashes, compaction, and deletion."""

from collections import Counter
from pathlib import Path

import pytest

from ingest.classification import agents
from tests.warehouse.site import DAY, NOON, TODAY, Site, die_at, loads, some_rows
from warehouse.hotlog import batches
from warehouse.lake import agents_file
from warehouse.maintenance import catch_up
from warehouse.maintenance.erase import Chosen, erase_before, erase_hits
from warehouse.query import sql
from warehouse.tables import ASSET_LOADS_TABLE, TABLES

NEXT = (NOON + DAY).date()
POSTED = (loads(1), loads(2, count=3), loads(None, count=9), loads(-5, NEXT), loads(1, project="other"))
EXPECTED = {("site", TODAY, 1): 1, ("site", TODAY, 2): 3, ("site", TODAY, None): 9} | {
    ("site", NEXT, -5): 1,
    ("other", TODAY, 1): 1,
}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    opened = Site(tmp_path)
    agents_file.write_agents(opened.root, agents.rows())
    return opened


def stored(site: Site) -> dict[tuple[object, ...], int]:
    """Return the loads of each key, from the SQL view: files and hot rows."""
    counts: Counter[tuple[object, ...]] = Counter()
    with sql.run_query(site.root.parent, "SELECT project_id, date, visitor, loads FROM asset_loads") as rows:
        for *key, number in (row.values() for row in rows.read_all().to_pylist()):
            counts[tuple(key)] += number
    return dict(counts)


@pytest.mark.long
@pytest.mark.parametrize("step", catch_up.POINTS)
def test_loads_are_counted_once_after_a_loader_was_killed_at_any_step(site: Site, step: str) -> None:
    site.post(*some_rows(0, 3))
    site.post_loads(*POSTED)
    site.stage(some_rows(3, 3), POSTED)
    expected = {key: 2 * number for key, number in EXPECTED.items()}
    assert stored(site) == expected
    die_at(site, "load.load(hot, root, 10, on_point)", step)
    assert stored(site) == expected
    site.load()
    assert stored(site) == expected
    assert {site.state(spec).offset for spec in TABLES} == {batches.last_id(site.hot)}
    site.compact()
    assert stored(site) == expected
    assert len(site.stored(ASSET_LOADS_TABLE)) == len(EXPECTED)  # added up
    assert len(site.event_ids()) == 6
    assert site.faults() == []
    site.close()


def test_loads_are_erased_with_their_project_days_and_retention_but_not_with_a_path(site: Site) -> None:
    site.post(*some_rows(0, 3))
    site.post_loads(*POSTED)

    def erase(chosen: Chosen) -> None:
        erase_hits(site.hot, site.root, site.share, chosen, 0)

    erase(Chosen("site", path="/0"))
    assert stored(site) == EXPECTED
    erase(Chosen("site", NEXT, NEXT + DAY))
    assert stored(site) == {key: number for key, number in EXPECTED.items() if key[1] == TODAY}
    erase(Chosen("site"))
    assert stored(site) == {("other", TODAY, 1): 1}
    erase_before(site.hot, site.root, NEXT, 0, 0)
    assert stored(site) == {}
    site.close()
