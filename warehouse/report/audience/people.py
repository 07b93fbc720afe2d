"""Views by people, by the evidence that a person was there."""

from dataclasses import replace
from typing import NamedTuple

from warehouse.columns.evidence import CONFIRMED, NONE
from warehouse.control.policy import COUNTED, DEFAULT
from warehouse.query.snapshot import Snapshot
from warehouse.report.cells import Scope
from warehouse.report.statements import Statements


class People(NamedTuple):
    """Views by people with evidence, without it, and without a measurement of it: see `warehouse.columns.evidence`."""

    confirmed: int = 0
    without_evidence: int = 0
    not_measured: int = 0


def people(statements: Statements, snapshot: Snapshot, scope: Scope) -> People:
    """Return the views by people by evidence, also the views that the policy `confirmed_people` leaves out."""
    periods = scope.filters.policy
    counted = (replace(each, policy=DEFAULT) if COUNTED[each.policy].only_confirmed else each for each in periods)
    of_people = replace(scope, filters=scope.filters.but(policy=tuple(counted), traffic="human"))
    rows = statements.counts(snapshot, of_people, "evidence").to_pylist()
    views = {row["evidence"]: row["human"] for row in rows}
    confirmed, without_evidence = sum(views.get(each, 0) for each in CONFIRMED), views.get(NONE, 0)
    return People(confirmed, without_evidence, sum(views.values()) - confirmed - without_evidence)
