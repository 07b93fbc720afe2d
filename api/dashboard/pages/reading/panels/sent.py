"""The card of the pages to which AI products sent visits."""

from api.dashboard.charts import bar
from api.dashboard.pages.reading.ai.operators import PEOPLE, products
from api.dashboard.pages.reading.measured import Measured
from api.dashboard.pages.reading.tables import ROWS, Row
from api.dashboard.web import links
from api.dashboard.web.view import View
from warehouse.report.results import Counts


def pages_sent(view: View, _: Measured) -> list[Row] | None:
    """Return the pages to which AI products sent most visits: `counts` are visits by people, and reads by AI.

    Return None if they are not known, as in `visits_sent`, or take long to count.
    """
    chosen = products(view)
    sent = view.reports.pages_sent(view.snapshot, view.query(), *chosen, ROWS) if chosen else None
    if sent is None:
        return None
    rows = []
    for page in sent:
        counts, segment = Counts(human=page.visits, ai=page.reads), bar.svg(Counts(human=page.visits), sent[0].visits)
        rows.append(Row(page.path, links.readable(page.path), counts, segment, view.link(path=page.path)))
    return rows


def of_people(view: View, measurement: Measured) -> list[Row] | None:
    """Return the pages for the overview, where a filter by AI or by other bots leaves out people and their visits."""
    return pages_sent(view, measurement) if view.filters["traffic"] in PEOPLE else None
