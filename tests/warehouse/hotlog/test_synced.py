"""The record of synced tables only rises, unless an accepted loss deletes it."""

import sqlite3

import pytest

from warehouse.hotlog import loads
from warehouse.hotlog.connection import STATEMENTS, HotConnection
from warehouse.hotlog.loads import Synced


def test_new_hot_log_has_no_record(hot: HotConnection) -> None:
    assert loads.synced(hot) == {}


@pytest.mark.parametrize(
    ("later", "recorded"),
    [
        (Synced(8, 5), Synced(8, 5)),
        (Synced(8, 0), Synced(8, 4)),
        (Synced(6, 5), Synced(7, 5)),
        (Synced(6, 3), Synced(7, 4)),
    ],
    ids=["both higher", "only the version", "only the batch", "both lower"],
)
def test_version_and_batch_rise_separately_and_never_fall(hot: HotConnection, later: Synced, recorded: Synced) -> None:
    loads.record_synced(hot, {"hits": Synced(7, 4), "requests": Synced(2, 4)})
    loads.record_synced(hot, {"hits": later})
    assert loads.synced(hot) == {"hits": recorded, "requests": Synced(2, 4)}


@pytest.mark.parametrize("hot_log", ["sqlite"], indirect=True)
def test_record_that_is_as_high_already_is_not_written(hot: HotConnection) -> None:
    assert isinstance(hot, sqlite3.Connection)
    loads.record_synced(hot, {"hits": Synced(7, 4)})
    changes = hot.total_changes
    loads.record_synced(hot, {"hits": Synced(7, 4)})
    assert hot.total_changes == changes


def test_lower_record_is_accepted_after_forget(hot: HotConnection) -> None:
    loads.record_synced(hot, {"hits": Synced(7, 4), "requests": Synced(2, 4)})
    STATEMENTS.run(hot, "FORGET_SYNCED")
    loads.record_synced(hot, {"hits": Synced(3, 1)})
    assert loads.synced(hot) == {"hits": Synced(3, 1)}
