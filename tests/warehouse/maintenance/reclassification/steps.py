"""A reclassification with a call between its steps."""

from collections.abc import Callable
from concurrent.futures import Future

from tests.warehouse.maintenance.reclassification.rules import RULES
from warehouse.batch.driver import Item, Result, ThisProcess
from warehouse.hotlog.connection import HotConnection
from warehouse.lake.roots import Root
from warehouse.maintenance.catch_up import OnStep
from warehouse.maintenance.reclassification.reclassify import Reclassified, reclassify
from warehouse.query.engine import Share

STEPS = ("files of a day written", "day committed")


class Stepping(ThisProcess):
    """The executor that calls `on_step` after each call."""

    def __init__(self, on_step: OnStep) -> None:
        self.on_step = on_step

    def submit(self, function: Callable[[Item], Result], item: Item) -> "Future[Result]":
        future = super().submit(function, item)
        self.on_step(STEPS[0])
        return future


def run_reclassify(hot: HotConnection, root: Root, share: Share, wait_s: float, on_step: OnStep) -> Reclassified:
    executor = Stepping(on_step)
    return reclassify(hot, root, share, RULES, wait_s, lambda *_: on_step(STEPS[1]), executor=executor)
