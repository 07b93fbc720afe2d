"""Choice and order of the paths that a report lists."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from warehouse.blocks.cumulative import Array

Order = Literal["total", "human", "ai", "bot", "path"]
"""Number by which paths are ordered, largest first, or `path`. Paths with equal numbers are in byte order."""
Audience = Literal["all", "ai_only", "people_only"]
"""Audience of the listed paths.

`ai_only` are the paths with a view by AI and none by people; `people_only` those with a view by people and none by AI.
"""
Views = tuple[Array, Array, Array]
"""Views by people, AI agents and bots."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Paths of a report and their order. `with_bots` includes the paths that only bots viewed."""

    order: Order = "total"
    audience: Audience = "all"
    with_bots: bool = False

    def weigh(self, views: Views) -> Array:
        """Return the number by which each path is ordered. It is 0 if the path is not listed."""
        if self == _DEFAULT:
            return views[0] + views[1]
        return np.where(self._is_listed(views), self._number(views) + 1, 0)

    def _is_listed(self, views: Views) -> Array:
        human, ai, bot = (each > 0 for each in views)
        match self.audience:
            case "ai_only":
                return ai & ~human
            case "people_only":
                return human & ~ai
            case "all":
                return human | ai | bot if self.with_bots else human | ai

    def _number(self, views: Views) -> Array:
        human, ai, bot = views
        match self.order:
            case "total":
                return human + ai
            case "human":
                return human
            case "ai":
                return ai
            case "bot":
                return bot
            case "path":
                return np.zeros_like(human)


_DEFAULT = Listing()
