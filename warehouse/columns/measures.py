"""Measures: numbers of a page view that cells add up. To add a measure, add a row to MEASURES.

Each cube and the cells of each report have a column for each measure. Ranked paths have the measure `views` alone.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measure:
    """A sum over page views. `sql` is the whole number of one page view, an expression over the columns of `hits`."""

    name: str
    sql: str
    meaning: str


MEASURES = (Measure("views", "1", "page views"),)


def each(expression: str) -> str:
    """Return an expression for each measure, as a list of a SELECT. `{name}` and `{sql}` are replaced."""
    return ", ".join(expression.format(name=measure.name, sql=measure.sql) for measure in MEASURES)
