"""Recoveries from a lost store, by the command `readership recover --accept-loss`, at a moment when nothing is lost."""

import os
from contextlib import closing
from typing import TYPE_CHECKING

from click.testing import CliRunner

from api.cli.recover import recover
from tests.simulation import operations
from tests.simulation.model import Fault
from tests.simulation.node import Node
from warehouse.hotlog import batches
from warehouse.lake import delta_log
from warehouse.maintenance import rollups
from warehouse.query import engine
from warehouse.tables import TABLES

if TYPE_CHECKING:
    from tests.simulation.episode import Episode


def lose_hot_log(episode: "Episode") -> None:
    """Lose the hot log after a load, and accept the loss. The record of imported logs and event ids may be lost, too.

    The senders therefore use new event ids, and the old logs are not imported again.
    """
    node = _stopped(episode)
    # A new hot log counts its generations from the second of the recovery: its moments are later than those of the lost
    # one if that had fewer generations than seconds, as where a person runs each command.
    episode.machine.advance(60.0, node.folder.resolve())
    for name in ("hot.sqlite", "hot.sqlite-wal", "hot.sqlite-shm"):
        (node.folder / name).unlink(missing_ok=True)
    _accept(node)
    episode.forget_event_ids()
    episode.logs = []
    episode.restart()


def break_commit(episode: "Episode") -> None:
    """Break the commit of the last load in one table, and accept the loss. The hot log still has the hits."""
    episode.post()
    episode.run(operations.load_hits)
    node = _stopped(episode)
    table = node.lake / episode.chance.choice(TABLES).name
    newest = delta_log.read(table).newest
    if newest > delta_log.read(table).checkpoint:
        os.truncate(delta_log.commit_file(table, newest), episode.chance.choice((0, 20)))
        _accept(node)
    episode.restart()
    node = episode.nodes[0]
    with closing(batches.connect(node.settings.hot_log)) as hot:
        rollups.rebuild(hot, node.lake, engine.Share(node.spill), node.now.date(), 0)


def _stopped(episode: "Episode") -> Node:
    episode.erasures += 1  # moments are revoked
    node = episode.nodes[0]
    node.stop()
    return node


def _accept(node: Node) -> None:
    result = CliRunner().invoke(recover, ["--accept-loss"], obj=node.settings)
    if result.exit_code or "accepted" not in result.output:
        raise Fault(f"recover --accept-loss: {result.output} {result.exception}") from result.exception
