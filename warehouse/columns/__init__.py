"""Columns, dimensions, measures, filters and source policies, each declared once.

- `kinds`: Kinds of requests, guessed from the path.
- `hits`: Columns of `hits`, from which the table's schema follows.
- `dimensions`: What reports group and filter by, what they add up, and the cubes in which rollups count it.
- `sources`: The set of sources that counted a page view, and source policies as masks of it.
- `evidence`: Evidence that a person was there, by visitor and UTC day.
- `visits`: Visitors and visits of rows of `hits`, as cells.
- `filters`: The filters of a report, as one SQL predicate over any rows of cells.
"""
