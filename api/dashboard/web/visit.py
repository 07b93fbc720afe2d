"""A request to a page: who sends it, which project it is about, and the formats that the viewer prefers."""

from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from zoneinfo import ZoneInfo

from babel import Locale
from starlette.requests import Request

from api.accounts.share_links import ShareLink
from api.accounts.users import User
from api.dashboard.web import cookies, links, locale
from api.dashboard.web.forms import Form
from api.http.headers import header
from api.reports.parameters import timezones
from api.state import State
from warehouse.columns.dimensions import FILTERS
from warehouse.control.projects import Project

UTC = ZoneInfo("UTC")
PERIOD = ("period", "date", "from", "to", "interval")
TABS = ("pages", "origins", "places", "devices")
"""Parameters of the cards of the overview that have tabs."""
KEPT = frozenset((*PERIOD, "compare", "zone", *TABS, *FILTERS))
"""Parameters that links to other pages of a project keep."""
ERRORS = "/errors"
OTHER_STATUS = (ERRORS, "/jobs")
"""Ends of the paths of pages whose parameter `status` is not the status of page views."""
PAGES_MAX = 40_000
"""Maximum number of a page of a list: its first row is within the API's maximum offset."""


@dataclass(frozen=True)
class Visit:
    """A request to a page. `form` is empty for a GET.

    `routes.authorise` sets the other fields after it has checked the rights: `user` is None without a valid session and
    on shared pages.
    """

    request: Request
    state: State
    now: datetime
    user: User | None = None
    project: Project | None = None
    form: Form = field(default_factory=Form)

    @property
    def base_url(self) -> str:
        return self.state.settings.base_url

    @property
    def can_change(self) -> bool:
        """Return whether the user may change something."""
        return self.user is not None and self.user.role == "owner"

    @property
    def user_name(self) -> str:
        """Return the name of the user, for the audit log."""
        assert self.user is not None
        return self.user.name

    @property
    def is_shared(self) -> bool:
        """Return whether the page is open to everybody who has a share link."""
        return False

    @property
    def base(self) -> str:
        """Return the path of the overview, below which the other pages of the project are; empty without a project."""
        return f"/projects/{self.project.id}" if self.project else ""

    @property
    def is_htmx(self) -> bool:
        """Return whether htmx asks for a part of the page."""
        return header(self.request, b"hx-request") == "true"

    @cached_property
    def locale(self) -> Locale:
        return locale.preferred(header(self.request, b"accept-language") or "")

    @cached_property
    def zone(self) -> ZoneInfo:
        """Return the time zone of the viewer's browser, or UTC until the zone is known."""
        name = self.request.cookies.get(cookies.ZONE, "")
        return ZoneInfo(name) if name in timezones() else UTC

    @property
    def parameters(self) -> dict[str, str]:
        """Return the query parameters. Of a repeated one the last value counts."""
        return dict(self.request.query_params)

    def page_of(self, pages: int = PAGES_MAX) -> tuple[int, str | None]:
        """Return the number of the page of a list that the address names; 1 and a sentence if there is no such page."""
        text = self.parameters.get("page", "1")
        number = number_of(text, pages)
        return (1, f"There is no page “{text[:40]}”; this is the first one.") if number is None else (number, None)

    def path_parameter(self, name: str) -> str:
        """Return a part of the path, decoded."""
        value: str = self.request.path_params[name]
        return value

    def href(self, path: str, /, **parameters: str | None) -> str:
        """Return the address of a page: see `links.href`."""
        return links.href(self.base_url, path, parameters)

    @property
    def kept(self) -> dict[str, str]:
        """Return the parameters of the address that are KEPT: period, comparison, zone, tabs of cards and filters."""
        return {name: value for name, value in self.parameters.items() if name in KEPT}

    def tab(self, path: str, /, **more: str | None) -> str:
        """Return the address of another page of the project, with what is `kept`, and `more` parameters."""
        own, without = self.request.url.path, dict[str, str | None]()
        if any(path.endswith(self.base + each) != own.endswith(self.base + each) for each in OTHER_STATUS):
            without["status"] = None
        return self.href(path, **(self.kept | without | more))

    @property
    def public_url(self) -> str:
        """Return the address of the service for visitors, without a slash at its end."""
        return links.public_url(self.request, self.base_url)


@dataclass(frozen=True)
class ProjectVisit(Visit):
    """A request to a page of a project: the project of the path, or of the share link `share` of a shared page."""

    project: Project = field(kw_only=True)
    share: ShareLink | None = None

    @property
    def is_shared(self) -> bool:
        return self.share is not None

    @property
    def has_pages(self) -> bool:
        """Return whether the visitor may open the other pages of counts."""
        return self.share is None or self.share.pages == "all"

    @property
    def base(self) -> str:
        return f"/shared/{self.path_parameter('share')}" if self.is_shared else super().base


def number_of(text: str, maximum: int) -> int | None:
    """Return the number from 1 to `maximum` that a text is; None for another text."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 8 else 0
    return number if 1 <= number <= maximum else None
