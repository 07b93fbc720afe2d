"""The card of the pages to which AI products sent visits."""

from markupsafe import Markup

from api.dashboard.charts import bar
from api.dashboard.pages.reading.ai.operators import PEOPLE, products
from api.dashboard.pages.reading.measured import Measured
from api.dashboard.pages.reading.tables import ROWS
from api.dashboard.web.view import View
from warehouse.report.audience.visits_sent import SentPage
from warehouse.report.results import Counts


def pages_sent(view: View, _: Measured) -> list[tuple[SentPage, Markup]] | None:
    """Return the pages to which AI products sent most visits, each with the bar of its row.

    Return None if they are not known, as in `visits_sent`, or take long to count.
    """
    chosen = products(view)
    sent = view.reports.pages_sent(view.snapshot, view.query(), *chosen, ROWS) if chosen else None
    if sent is None:
        return None
    return [(page, bar.svg(Counts(human=page.visits), sent[0].visits)) for page in sent]


def of_people(view: View, measurement: Measured) -> list[tuple[SentPage, Markup]] | None:
    """Return the pages for the overview, where a filter by AI or by other bots leaves out people and their visits."""
    return pages_sent(view, measurement) if view.filters["traffic"] in PEOPLE else None
