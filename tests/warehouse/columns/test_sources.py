"""Masks of sources count the page views that the policies describe."""

from itertools import product

import duckdb
import pytest

from warehouse.columns import sources
from warehouse.control.policy import POLICIES, Policy

FORMATS = [None, "html", "md", "markdown", "text/markdown"]


def counts(policy: Policy, traffic: str, source: str, format: str | None) -> bool:
    """Return whether a policy counts a page view, in the words of its documentation."""
    match policy:
        case "beacon_only":
            return source == "beacon"
        case "log_only":
            return source != "beacon"
        case "beacon_people_log_machines":
            is_person = traffic == "human" and format in {None, "html"}
            return (source == "beacon") == is_person
    return True


EVIDENCE = [None, "script", "assets", "navigation", "none", "not_measured"]


@pytest.mark.parametrize("policy", POLICIES)
def test_policy_is_the_mask_of_the_sources_that_it_counts(policy: Policy) -> None:
    cells = list(product(("human", "ai", "bot"), ("beacon", "server", "log"), FORMATS, EVIDENCE))
    values = ", ".join(["(?, ?, ?, ?)"] * len(cells))
    rows = duckdb.execute(
        f"SELECT traffic, source, format, evidence, sources & {sources.of_policy(policy)} <> 0, {sources.NAME},"
        f" {sources.EVIDENCE} FROM"
        f" (SELECT *, {sources.BITS} AS sources FROM (VALUES {values}) AS hits(traffic, source, format, evidence))",
        [value for cell in cells for value in cell],
    ).fetchall()
    assert len({*rows}) == len(cells)
    for traffic, source, form, evidence, *shown in rows:
        is_hidden = policy == "confirmed_people" and (traffic, evidence) == ("human", "none")
        known = (evidence or "not_measured") if traffic == "human" else None
        assert shown == [counts(policy, traffic, source, form) and not is_hidden, source, known]


def test_unknown_source_is_an_error() -> None:
    with pytest.raises(duckdb.ConversionException, match="telepathy"):
        duckdb.execute(
            f"SELECT {sources.BITS} FROM (SELECT 'telepathy' AS source, *"
            " FROM (SELECT NULL AS format, 'ai' AS traffic, NULL AS evidence))"
        ).fetchall()


def test_policy_counts_a_source_as_it_counts_its_page_views_without_markdown() -> None:
    for policy, traffic, source in product(POLICIES, ("human", "ai", "bot"), ("beacon", "server", "log")):
        assert sources.counts(policy, source, traffic) == counts(policy, traffic, source, "html")
