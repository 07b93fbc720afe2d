"""A reclassification with a call at points of it."""

from collections.abc import Callable
from concurrent.futures import Future

from tests.warehouse.maintenance.reclassification.rules import RULES
from warehouse.batch.driver import Item, Result, ThisProcess
from warehouse.hotlog.connection import HotConnection
from warehouse.lake.roots import Root
from warehouse.maintenance.catch_up import OnPoint
from warehouse.maintenance.reclassification.reclassify import Reclassified, reclassify
from warehouse.query.engine import Share

POINTS = ("files of a day written", "day committed")


class Stepping(ThisProcess):
    """The executor that calls `on_point` after each call."""

    def __init__(self, on_point: OnPoint) -> None:
        self.on_point = on_point

    def submit(self, function: Callable[[Item], Result], item: Item) -> "Future[Result]":
        future = super().submit(function, item)
        self.on_point(POINTS[0])
        return future


def run_reclassify(hot: HotConnection, root: Root, share: Share, wait_s: float, on_point: OnPoint) -> Reclassified:
    executor = Stepping(on_point)
    return reclassify(hot, root, share, RULES, wait_s, lambda *_: on_point(POINTS[1]), executor=executor)
