"""Loads of assets and events are stored once, through crashes, compaction, and deletion."""

from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from tests.rounds import seeded, some
from tests.warehouse.site import DAY, NOON, TODAY, Site, event, loads, some_rows
from warehouse.hotlog import batches
from warehouse.lake import agents_file
from warehouse.maintenance import catch_up
from warehouse.maintenance.erase import Chosen, erase_before, erase_hits
from warehouse.query import sql
from warehouse.tables import ASSET_LOADS_TABLE, TABLES

NEXT = (NOON + DAY).date()
POSTED = (loads(1), loads(2, count=3), loads(None, count=9), loads(-5, NEXT), loads(1, project="other"))
EVENTS = (
    event("Z", visitor=1, props='{"plan": "pro"}'),
    event("A", visitor=-5, ts=NOON + DAY, path="/b", traffic="ai", agent="GPTBot"),
    event("A", visitor=-5, ts=NOON + DAY, path="/b", traffic="ai", agent="GPTBot"),
    event(project_id="other", interactive=False),
)
EXPECTED = {("site", TODAY, 1): 1, ("site", TODAY, 2): 3, ("site", TODAY, None): 9} | {
    ("site", NEXT, -5): 1,
    ("other", TODAY, 1): 1,
    ("site", TODAY, "Z", "/a", 1, "human", None, True, '{"plan": "pro"}'): 1,
    ("site", NEXT, "A", "/b", -5, "ai", "GPTBot", True, None): 2,
    ("other", TODAY, "Signup", "/a", None, "human", None, False, None): 1,
}


def prepare(site: Site) -> None:
    agents_file.write_agents(site.root, [])


def stored(site: Site) -> dict[tuple[object, ...], int]:
    """Return the loads and the events of each key, from the SQL views: files and hot rows."""
    counts: Counter[tuple[object, ...]] = Counter()
    for statement in (
        "SELECT project_id, date, visitor, loads FROM asset_loads",
        "SELECT project_id, date, name, path, visitor, traffic, agent, interactive, props, 1 FROM events",
    ):
        with sql.run_query(site.root.parent, statement) as rows:
            for *key, number in (row.values() for row in rows.read_all().to_pylist()):
                counts[tuple(key)] += number
    return dict(counts)


@pytest.mark.long
def test_rows_are_counted_once_after_a_loader_was_killed_at_any_step(site: Site, tmp_path: Path) -> None:
    site.post(*some_rows(0, 3))
    site.post_loads(*POSTED)
    site.post_events(*EVENTS)
    site.stage(some_rows(3, 3), POSTED, events=EVENTS)
    expected = {key: 2 * number for key, number in EXPECTED.items()}
    assert stored(site) == expected
    copies = site.copies(tmp_path / "copies", site.load)[: len(catch_up.POINTS)]
    for _, folder in some(seeded(2), copies, 3):
        with closing(Site(folder, is_new=False)) as copied:
            assert stored(copied) == expected
            copied.load()
            assert stored(copied) == expected
            assert {copied.state(spec).offset for spec in TABLES} == {batches.last_id(copied.hot)}
            copied.compact()
            assert stored(copied) == expected
            assert len(copied.stored(ASSET_LOADS_TABLE)) == len(POSTED)  # added up
            assert len(copied.event_ids()) == 6
            assert copied.faults() == []


def test_rows_are_erased_with_their_project_days_retention_and_path(site: Site) -> None:
    site.post(*some_rows(0, 3))
    site.post_loads(*POSTED)
    site.post_events(*EVENTS)

    def erase(chosen: Chosen) -> None:
        erase_hits(site.hot, site.root, site.share, chosen, 0)

    expected = {key: number for key, number in EXPECTED.items() if key[:2] != ("site", NEXT) or "/b" not in key}
    erase(Chosen("site", path="/b"))  # loads of assets have no path
    assert stored(site) == expected
    erase(Chosen("site", NEXT, NEXT + DAY))
    assert stored(site) == {key: number for key, number in expected.items() if key[1] == TODAY}
    erase(Chosen("site"))
    assert stored(site) == {key: number for key, number in EXPECTED.items() if key[0] == "other"}
    erase_before(site.hot, site.root, NEXT, 0, 0)
    assert stored(site) == {}
