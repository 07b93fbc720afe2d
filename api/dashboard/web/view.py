"""The period, the filters and the moment of a page of counts, from its address."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any
from zoneinfo import ZoneInfo

from api.dashboard.robots import texts
from api.dashboard.web import locale
from api.dashboard.web import period as periods
from api.dashboard.web.period import Period
from api.dashboard.web.visit import ERRORS, KEPT, PERIOD, ProjectVisit
from api.http.parameters import Values
from api.http.problems import Problem
from api.reports import parameters
from api.reports.parameters import Selection, timezones
from api.reports.report import Run
from warehouse.columns.dimensions import FILTERS, dimension
from warehouse.columns.filters import Filters
from warehouse.query.snapshot import Snapshot
from warehouse.report.reports import AGENT_PAGES_DAYS, Reports
from warehouse.report.results import Query
from warehouse.report.source_coverage import Coverage

TRAFFIC = {"human": "People", "ai": "AI", "bot": "Other bots"}
SOURCES = {"beacon": "Website script", "server": "Your server", "log": "Access logs"}
PURPOSES = {
    "training": "Training",
    "search": "AI search",
    "assistant": "Answers a person",
    "agent": "Acts by itself",
    "data": "Resells data",
}
STATES = {
    "verified": "Verified",
    "signed_known_key": "Known key",
    "claimed": "Claimed",
    "not_checked": "Not checked",
    "invalid_signature": "Invalid signature",
    "spoofed": "Spoofed",
}
"""Names of the states of the verification, in the order of the pages."""
VALUE_NAMES: Mapping[str, Mapping[str, str]] = {
    "traffic": TRAFFIC,
    "source": SOURCES,
    "purpose": PURPOSES,
    "verification": STATES,
    "evidence": {
        "script": "Website script",
        "assets": "Loads of assets",
        "navigation": "Links followed",
        "none": "None",
        "not_measured": "Not measured",
    },
    "device": {"desktop": "Desktop", "mobile": "Phone", "tablet": "Tablet"},
    "format": {
        "text/html": "HTML",
        "text/markdown": "Markdown",
        "text/plain": "Plain text",
        "application/pdf": "PDF",
        "application/json": "JSON",
    },
}
"""Names of values by dimension. Another value is shown as it is stored."""
_PLACE = ("page", "sort")
"""Parameters for the place in a table, which a link to other counts leaves out."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter that is on. `parameter` is its name in addresses."""

    parameter: str
    name: str
    value: str


class View:
    """The counts that a page shows. All of them are of one moment."""

    def __init__(self, visit: ProjectVisit) -> None:
        self.visit, self.project = visit, visit.project
        self.faults: list[str] = []
        """Sentences about invalid parameters. The page shows them, with the status 400."""
        self.values = visit.parameters
        self.zone = self._zone()
        self.period: Period = periods.parse(self.values, self.zone, visit.now, self.faults, self._first_view())
        self.filters = self._filters()
        self._fixed: frozenset[str] = frozenset()
        self.dropped: list[str] = []

    def drop(self, *names: str) -> None:
        """Remove filters that the page does not have. `dropped` has the titles of active ones, which the page names."""
        self.dropped = [dimension(name).title for name in self.filters.fields if name in names]
        self.fix(**dict.fromkeys(names))

    def fix(self, **filters: Any) -> None:
        """Replace filters by those that the page itself sets. Links, forms and chips of the page omit them.

        The page names the filters whose value in the address differs from its own: see `dropped`.
        """
        other = [name for name, value in self.filters.fields.items() if filters.get(name) not in (None, value)]
        self.dropped += [dimension(name).title for name in other]
        self.values = {name: value for name, value in self.values.items() if name not in filters}
        self.filters = self.filters.but(**filters)
        self._fixed = self._fixed.union(filters)

    @property
    def status(self) -> int:
        return 400 if self.faults else 200

    def require_valid(self) -> None:
        """Raise Problem `invalid-parameter` with all faults, if there are any: a file cannot show them."""
        if self.faults:
            raise Problem("invalid-parameter", " ".join(self.faults).removesuffix("."))

    @property
    def reports(self) -> Reports:
        return self.visit.state.reports

    @cached_property
    def snapshot(self) -> Snapshot:
        return self.reports.take()

    @cached_property
    def coverage(self) -> Coverage:
        return self.reports.source_coverage(self.snapshot, self.project.id)

    @cached_property
    def now(self) -> datetime:
        """Return the moment of the counts."""
        return _EPOCH + timedelta(microseconds=self.snapshot.moment.taken_us)

    @cached_property
    def previous(self) -> Period | None:
        """Return the period to compare with; None if the address asks for none."""
        return self.period.previous(self.visit.now) if self.values.get("compare") == "previous" else None

    def query(self, period: Period | None = None, **changes: Any) -> Query:
        """Return the query of a report: the filters of the page with `changes`, in its period or another one."""
        chosen = period or self.period
        filters = self.filters.but(**changes) if changes else self.filters
        return Query(self.project.id, chosen.start, chosen.end, filters, self.now)

    def run(self, query: Query | None = None, **chosen: Any) -> Run:
        """Return the computation of a report of the API: by default with the query of this page.

        `chosen` are fields of `Selection`.
        """
        asked = query or self.query()
        selection = Selection(asked.project, asked.start, asked.end, asked.filters, **chosen)
        return Run(self.reports, self.snapshot, selection)

    def link(self, path: str | None = None, /, **changes: str | None) -> str:
        """Return the address of a page with the period and filters of this page, and `changes`.

        A change to None removes the parameter. `path` is that of this page by default. The parameter `from` is passed
        as `from_`.
        """
        changed = {name.removesuffix("_"): value for name, value in changes.items()}
        own = self.visit.request.url.path.removeprefix(self._prefix)
        return self.visit.href(own if path is None else path, **(self.hidden() | changed))

    def in_period(self, name: str | Mapping[str, str], path: str | None = None, /, **changes: str | None) -> str:
        """Return the address of a page in another period: the name of one, or its parameters."""
        other = {"period": name} if isinstance(name, str) else name
        return self.link(path, **{**dict.fromkeys(PERIOD), **other, **changes})

    def tab(self, path: str, **more: str | None) -> str:
        """Return the address of another page: see `Visit.tab`. The path of the page of one path is no filter of it."""
        own = {"path": None} if self.filters.path and "path" in self._fixed else {}
        return self.visit.tab(path, **own, **more)

    def table_link(self, **changes: str | None) -> str:
        """Return the address of this page with another sort or page of its table."""
        place = {name: self.values[name] for name in _PLACE if name in self.values}
        return self.link(None, **(place | changes))

    def page_number(self) -> int:
        """Return the number of a table's page, from 1, by the parameter `page`. Add an invalid number to the faults."""
        number, fault = self.visit.page_of()
        self.faults += [fault] if fault else []
        return number

    def hidden(self, *without: str) -> dict[str, str]:
        """Return the parameters of this page as hidden fields of a GET form, without those that the form sets."""
        return {name: value for name, value in self.values.items() if name in KEPT and name not in without}

    @cached_property
    def robots_changes(self) -> list[datetime]:
        """Return the times at which the robots.txt of the project changed."""
        return texts.changes(self.visit.state.control, self.project.id)

    @cached_property
    def chips(self) -> list[Chip]:
        """Return the filters that are on, in the order of the address."""
        return [
            Chip(name, dimension(name).title, value_name(name, value))
            for name, value in self.filters.fields.items()
            if name not in self._fixed
        ]

    @property
    def period_name(self) -> str:
        """Return the name of the period, or its days: Last 30 days, or November 2026."""
        period, viewer = self.period, self.visit.locale
        if period.name == periods.NEW:
            return "Since the first view"
        if period.name in periods.PRESETS and "date" not in self.values:
            return periods.PRESETS[period.name]
        assert period.first is not None
        if period.name == "year":
            return str(period.first.year)
        if period.name == "month":
            return locale.month(period.first, viewer)
        return self._days(period)

    @property
    def previous_name(self) -> str:
        """Return the days of the period before, and the time until which it is compared with a period that ends now."""
        before = self.period.previous(self.visit.now)
        if before is None:
            return ""
        if before.end is None or self.period.end:
            return self._days(before)
        return f"{self._days(before)}, until {locale.clock(before.end, self.zone, self.visit.locale, 'short')}"

    @property
    def pages_days(self) -> int | None:
        """Return the number of last days in which the pages of AI are counted; None if the period is not longer."""
        days = self.period.days
        return AGENT_PAGES_DAYS if days is None or days > AGENT_PAGES_DAYS else None

    @property
    def no_filters(self) -> dict[str, None]:
        """Return the changes of a link to this page without the filters of `chips`."""
        return dict.fromkeys(chip.parameter for chip in self.chips)

    def day(self, instant: datetime) -> str:
        """Return the day of an instant in the time zone of the page: Sep 1, 2026."""
        return locale.day(instant.astimezone(self.zone).date(), self.visit.locale)

    def _days(self, period: Period) -> str:
        assert period.first is not None
        days = (locale.day(each, self.visit.locale) for each in (period.first, period.last))
        return " \N{EN DASH} ".join(dict.fromkeys(days))

    @property
    def _prefix(self) -> str:
        return self.visit.href("/").removesuffix("/")

    def _first_view(self) -> datetime | None:
        """Return the time of the first view; None on the page of errors, which are counted by days."""
        if self.visit.request.url.path.removesuffix(".csv").endswith(self.visit.base + ERRORS):
            return None
        return min((source.first_hit for source in self.coverage.sources), default=None)

    def _zone(self) -> ZoneInfo:
        name = self.values.get("zone")
        if name is None:
            return self.visit.zone
        if name not in timezones():
            self.faults.append(f"There is no time zone “{name[:40]}”; the days are in {self.visit.zone.key}.")
            return self.visit.zone
        return ZoneInfo(name)

    def _filters(self) -> Filters:
        # Unknown parameters are ignored: links from mails and other sites add their own.
        values = Values(self.visit.request, tuple(self.values))
        filters = parameters.filters(values)
        self.faults += [
            f"{dimension(name).title if (name := fault.parameter) in FILTERS else name} {fault.detail}."
            for fault in values.faults
        ]
        return filters


def value_name(name: str, value: str) -> str:
    """Return a value of a dimension as pages show it, all but paths: see `links.readable`."""
    if name in {"country", "language"}:
        return locale.territory(value) if name == "country" else locale.language(value)
    return VALUE_NAMES.get(name, {}).get(value, value)
