"""The source policy of a project on the page Set up: which sources count, since when, and what two sources both saw."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import cast

from api.dashboard.web.forms import Form
from api.dashboard.web.period import FIRST_DAY, LAST_DAY, day_of
from api.dashboard.web.visit import ProjectVisit
from warehouse.control import policy, source_policies
from warehouse.control.policy import COUNTED, POLICIES, Period, Policy
from warehouse.report.source_coverage import Coverage

POLICY, FROM = "policy", "from"
"""Fields of the form."""
NAMES: Mapping[Policy, str] = {
    "all": "Every source",
    "beacon_only": "Website script only",
    "log_only": "Server and access logs only",
    "beacon_people_log_machines": "People from the website script, the rest from server and access logs",
    "confirmed_people": "Every source, no people without evidence",
}
"""Names of the policies as the pages show them."""


@dataclass(frozen=True, slots=True)
class SourcePolicy:
    """The policies of a project, the present policy, and the coverage, which has the views that two sources sent.

    `periods` begin with the first policy, whose day is None: it is valid for all days before the next one. `first_days`
    are the first days of a new policy without a day; None is all days.
    """

    periods: tuple[tuple[date | None, Policy], ...]
    present: Policy
    since: date | None
    coverage: Coverage
    first_days: Mapping[Policy, date | None]

    @property
    def counts_twice(self) -> bool:
        """Return whether people who are counted today may be counted twice."""
        return COUNTED[self.present].counts_twice and self.coverage.overlap_days > 0


def policy_of(visit: ProjectVisit, coverage: Coverage) -> SourcePolicy:
    """Return the policies of the project of a visit. `coverage` is that of the same project."""
    stored = source_policies.periods(visit.state.control, visit.project.id)
    today = visit.now.date()
    if not stored or stored[0].from_date > date.min:
        stored = (Period(date.min, policy.DEFAULT), *stored)
    since = max(each.from_date for each in stored if each.from_date <= today)
    periods = tuple((_shown(each.from_date), each.policy) for each in stored)
    first_days = {name: _shown(policy.first_day(name, coverage.first_hits, today)) for name in POLICIES}
    return SourcePolicy(periods, policy.on(stored, today), _shown(since), coverage, first_days)


def save(visit: ProjectVisit) -> bool:
    """Store the policy of the visit's form and return True, or record the faults of the form and return False."""
    chosen = cast("Policy", visit.form.choice(POLICY, POLICIES))
    from_date = _from_date(visit.form)
    if visit.form.faults:
        return False
    if from_date is None:
        reports = visit.state.reports
        first_hits = reports.source_coverage(reports.take(), visit.project.id).first_hits
        from_date = policy.first_day(chosen, first_hits, visit.now.date())
    source_policies.put(visit.state.control, visit.project.id, chosen, from_date, visit.user_name)
    return True


def _from_date(form: Form) -> date | None:
    """Return the first UTC day of the form; None if the field is empty."""
    text = form.text(FROM, 10, required=False)
    if text and not day_of(text):
        form.fault(FROM, f"Use a day from {FIRST_DAY} to {LAST_DAY}, or leave the field empty.")
    return day_of(text)


def _shown(from_date: date) -> date | None:
    return None if from_date == date.min else from_date
