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


@pytest.mark.parametrize("policy", POLICIES)
def test_policy_is_the_mask_of_the_sources_that_it_counts(policy: Policy) -> None:
    cells = list(product(("human", "ai", "bot"), ("beacon", "server", "log"), FORMATS))
    values = ", ".join(["(?, ?, ?)"] * len(cells))
    rows = duckdb.execute(
        f"SELECT traffic, source, format, sources & {sources.of_policy(policy)} <> 0, {sources.NAME}"
        f" FROM (SELECT *, {sources.BITS} AS sources FROM (VALUES {values}) AS hits(traffic, source, format))",
        [value for cell in cells for value in cell],
    ).fetchall()
    assert {tuple(cell): (is_counted, name) for *cell, is_counted, name in rows} == {
        cell: (counts(policy, *cell), cell[1]) for cell in cells
    }


def test_unknown_source_is_an_error() -> None:
    with pytest.raises(duckdb.ConversionException, match="telepathy"):
        duckdb.execute(f"SELECT {sources.BITS} FROM (SELECT 'telepathy' AS source, NULL AS format)").fetchall()


def test_policy_counts_a_source_as_it_counts_its_page_views_without_markdown() -> None:
    for policy, traffic, source in product(POLICIES, ("human", "ai", "bot"), ("beacon", "server", "log")):
        assert sources.counts(policy, source, traffic) == counts(policy, traffic, source, "html")
