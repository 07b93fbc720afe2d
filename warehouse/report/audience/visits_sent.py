"""Views by people that AI products sent, by the operators of the products."""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from warehouse.columns.filters import Filters


def without_agents(filters: Filters) -> Filters:
    """Return the filters without those of readers: a person who follows a link of an AI product is no AI agent."""
    return filters.but(traffic=None, agent=None, operator=None, purpose=None, verification=None)


def by_operator(counts: pa.Table, by: str, operators: Mapping[str, str]) -> dict[str, int]:
    """Return the human views of each operator, 0 included. `operators` has the operators by the values of `by`."""
    visits = dict.fromkeys(operators.values(), 0)
    sent = counts.filter(pc.is_in(counts[by], value_set=pa.array(operators, pa.string())))
    for value, human in zip(sent[by].to_pylist(), sent["human"].to_pylist(), strict=True):
        visits[operators[value]] += human
    return visits


def larger(some: Mapping[str, int], others: Mapping[str, int]) -> dict[str, int]:
    """Return the larger of two numbers of visits of each operator.

    Most visits of a product that adds a campaign to its links have the referrer and the campaign, and the two
    counts do not show how many: their sum would count these visits twice.
    """
    return {operator: max(some.get(operator, 0), others.get(operator, 0)) for operator in {**some, **others}}
