"""Views by people and their visitors, by the evidence that a person was there."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from warehouse.columns.evidence import CONFIRMED, NONE
from warehouse.control.policy import COUNTED, DEFAULT
from warehouse.query.snapshot import Snapshot
from warehouse.report.audience import visitors
from warehouse.report.cells import Scope
from warehouse.report.statements import Statements


class Group(NamedTuple):
    """Views by people, and the distinct visitors of each UTC day. Views without a visitor are not measured."""

    views: int = 0
    visitors: int = 0


@dataclass(frozen=True, slots=True)
class People:
    """People with evidence, without it, and without a measurement of it: see `warehouse.columns.evidence`."""

    confirmed: Group
    without_evidence: Group
    not_measured: Group


def people(statements: Statements, snapshot: Snapshot, scope: Scope) -> People:
    """Return the views and visitors of people by evidence, also those that the policy `confirmed_people` leaves out.

    Raises:
        TooManyViews
    """
    periods = scope.filters.policy
    counted = (replace(each, policy=DEFAULT) if COUNTED[each.policy].only_confirmed else each for each in periods)
    of_people = replace(scope, filters=scope.filters.but(policy=tuple(counted), traffic="human"))
    groups = {name: [0, 0] for name in ("confirmed", "without_evidence", "not_measured")}
    counts = (
        statements.counts(snapshot, of_people, "evidence"),
        visitors.counts(statements, snapshot, of_people, "evidence"),
    )
    for number, rows in enumerate(counts):
        for evidence, human in zip(rows["evidence"].to_pylist(), rows["human"].to_pylist(), strict=True):
            name = "confirmed" if evidence in CONFIRMED else "without_evidence" if evidence == NONE else "not_measured"
            groups[name][number] += human
    return People(**{name: Group(*each) for name, each in groups.items()})
