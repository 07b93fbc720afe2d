"""Evidence that a person was there, by visitor and UTC day, from all rows of the day.

It belongs to all views that a visitor has as a person on a day, because a first page comes before its assets.
"""

SCRIPT, ASSETS, NAVIGATION, NONE, NOT_MEASURED = "script", "assets", "navigation", "none", "not_measured"
VALUES = (SCRIPT, ASSETS, NAVIGATION, NONE, NOT_MEASURED)
"""Kinds of evidence, the strongest first. Views without a visitor are not measured."""
CONFIRMED = VALUES[:3]
ASSETS_SHARE = 0.01
"""Minimum share of the loads of assets in the page views and loads of a project's logs on a day. Below it, assets are
not logged, and readers without other evidence are not measured."""
_PATH = r"regexp_replace(regexp_extract(referrer, '^[^:]*://[^/?#]*([^?#]*)', 1), '(/index\.html?)?/*$', '')"
_LINKED = f"if(channel IS NULL AND referrer_host IS NOT NULL, hash(if({_PATH} = '', '/', {_PATH})), NULL)"
"""SQL expression of the page of the same site that links to a view: see `hits.channel`."""
COLUMNS = ("channel", "date", "path", "project_id", "referrer", "referrer_host", "source", "traffic", "ts", "visitor")
"""Columns of `hits` that the evidence depends on."""
OF_VISITORS = f"""
WITH people AS (
    SELECT project_id, date, visitor, source, ts, hash(path) AS page, {_LINKED} AS linked
    FROM {{rows}} WHERE traffic = 'human' AND visitor IS NOT NULL AND {{within}}
), measured AS (
    SELECT project_id, date FROM (
        SELECT project_id, date, loads, 0 AS views FROM {{loads}}
        UNION ALL SELECT project_id, date, 0, 1 FROM {{rows}} WHERE source = 'log'
    ) GROUP BY ALL HAVING sum(loads) > 0 AND sum(loads) >= {ASSETS_SHARE} * (sum(loads) + sum(views))
), loaded AS (
    SELECT DISTINCT project_id, date, visitor FROM {{loads}} SEMI JOIN measured USING (project_id, date)
), pages AS (
    SELECT project_id, date, visitor, page AS linked, min(ts) AS first FROM people GROUP BY ALL
), navigated AS (
    SELECT DISTINCT project_id, date, visitor FROM people JOIN pages USING (project_id, date, visitor, linked)
    WHERE first < ts
)
SELECT project_id, date, visitor, CASE
    WHEN bool_or(source = 'beacon') THEN '{SCRIPT}'
    WHEN (project_id, date, visitor) IN (FROM loaded) THEN '{ASSETS}'
    WHEN (project_id, date, visitor) IN (FROM navigated) THEN '{NAVIGATION}'
    WHEN (project_id, date) IN (FROM measured) THEN '{NONE}' ELSE '{NOT_MEASURED}' END AS evidence
FROM people GROUP BY project_id, date, visitor
"""


def of_visitors(rows: str, loads: str, within: str = "true") -> str:
    """Return the SELECT of the evidence of each visitor and day of people.

    `rows` of `hits` and `loads` of assets are relations of whole days. `within` is a condition on the rows that holds
    for all rows of a visitor, or for none.
    """
    return OF_VISITORS.format(rows=rows, loads=loads, within=within)


def joined(rows: str, evidence: str) -> str:
    """Return the relation of rows of `hits` with the column `evidence`, from a relation of the evidence of visitors."""
    return (
        f"(SELECT hits.*, if(traffic = 'human', coalesce(evidence, '{NOT_MEASURED}'), NULL) AS evidence FROM {rows} AS"
        " hits LEFT JOIN (SELECT project_id AS of_project, date AS of_date, visitor AS of_visitor, evidence FROM"
        f" {evidence}) ON of_project = project_id AND of_date = date AND of_visitor = visitor)"
    )


def unknown(rows: str) -> str:
    """Return the relation of rows of `hits` with the column `evidence`, which is null."""
    return f"(SELECT *, NULL::VARCHAR AS evidence FROM {rows})"
