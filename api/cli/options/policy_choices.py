"""The choices of `project policy`: the views that a source policy leaves out, before it is set."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime

from api import data_folder
from api.cli.output import ERR, table
from api.settings import Settings
from warehouse.columns.filters import Filters
from warehouse.control import policy
from warehouse.control.policy import Periods, Policy
from warehouse.errors import NoData
from warehouse.query.snapshot import SnapshotReader
from warehouse.query.time_range import FIRST
from warehouse.report.reports import Reports
from warehouse.report.results import Query

Count = Callable[[Periods, date | None], int]


@dataclass(frozen=True, slots=True)
class Choices:
    """Basis of a choice of policy: the present policies, and the time of the first hit of each source."""

    settings: Settings
    project: str
    periods: Periods
    first_hits: dict[str, datetime]
    now: datetime

    def first_day(self, chosen: Policy) -> date:
        """Return the day from which a policy is valid by default."""
        return policy.first_day(chosen, self.first_hits, self.now.date())


def choices_of(settings: Settings, project: str, periods: Periods) -> Choices:
    """Return the choices of a project. Nothing is created if there are no hits yet."""
    now, first_hits = datetime.now(UTC), dict[str, datetime]()
    try:
        data_folder.require_hot_log(settings)
    except NoData:
        return Choices(settings, project, periods, first_hits, now)
    with _reports(settings, lambda project: ()) as reports:
        first_hits |= reports.source_coverage(reports.take(), project).first_hits
    return Choices(settings, project, periods, first_hits, now)


def show(choices: Choices, chosen: Iterable[tuple[Policy, date]]) -> None:
    """Print what the present policies leave out, and each policy from its day on and on all days."""
    if not choices.first_hits:
        return
    with _counter(choices) as count:
        rows: list[tuple[object, ...]] = [("now", "", *_left_out(count, choices.periods, None))]
        for name, first in chosen:
            periods = policy.changed(choices.periods, name, first)
            rows.append((name, "all days" if first == date.min else str(first), *_left_out(count, periods, first)))
            if first != date.min:
                everything = policy.changed((), name, date.min)
                rows.append((name, "all days", *_left_out(count, everything, first)))
    ERR.print(table(("policy", "from", "left out before", "left out since"), rows, title="Views by people and AI"))


def _left_out(count: Count, periods: Periods, first: date | None) -> tuple[int, int]:
    """Return the views that policies leave out before a day and from then on; all of them are since if it is None."""
    since = None if first in (None, date.min) else first
    before = count((), since) - count(periods, since) if since else 0
    return before, count((), None) - count(periods, None) - before


@contextmanager
def _counter(choices: Choices) -> Iterator[Count]:
    """Yield a function that returns the views by people and AI that policies count, until the begin of a day."""
    counted: list[Periods] = []

    def count(periods: Periods, end: date | None) -> int:
        counted.append(periods)
        until = datetime(end.year, end.month, end.day, tzinfo=UTC) if end else None
        query = Query(choices.project, FIRST, until, Filters(), choices.now)
        return reports.breakdown(snapshot, query, "source", 0, 1).totals.total

    with _reports(choices.settings, lambda project: counted[-1]) as reports:
        snapshot = reports.take()
        yield count


@contextmanager
def _reports(settings: Settings, policy_of: Callable[[str], Periods]) -> Iterator[Reports]:
    reader, spill = SnapshotReader(settings.hot_log, settings.lake), settings.run / "spill"
    with closing(Reports(reader, settings.lake, spill, settings.cache_bytes, policy_of)) as reports:
        yield reports
