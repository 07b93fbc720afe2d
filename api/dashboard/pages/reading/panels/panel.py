"""The record of a card. A new card is a module with its data, a template, and a row in the tuple of its page."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from api.dashboard.pages.reading.measured import Measured
from api.dashboard.web.view import View


class Panel(NamedTuple):
    """A card: its id on the page, the function that returns its data, and the name of its template.

    Without data, the page leaves the card out.
    """

    id: str
    data: Callable[[View, Measured], Any]
    template: str


def filled(panels: Sequence[Panel], view: View, measurement: Measured) -> list[tuple[Panel, Any]]:
    """Return the cards that have data, with their data."""
    every = [(panel, panel.data(view, measurement)) for panel in panels]
    return [(panel, data) for panel, data in every if data is not None]
