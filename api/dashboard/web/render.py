"""Pages as HTML: templates with escaped values, and the headers that every page has."""

from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from starlette.responses import RedirectResponse, Response

from api.dashboard.web import links, locale
from api.dashboard.web.assets import assets
from api.dashboard.web.forms import sentence
from api.dashboard.web.period import KEYS, PRESETS
from api.dashboard.web.view import TRAFFIC, View
from api.dashboard.web.visit import Visit

TEMPLATES = Path(__file__).parents[1] / "templates"
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
"""Content-Security-Policy of every page: no inline script or style, and no other host."""
HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Vary": "Accept-Language, Cookie, HX-Request",
}
"""Headers of every page. `no-store`: the numbers change, and another user of the browser must not see the page."""
NOTICE = "notice"
"""Query parameter with the name of the notice that a page shows after a form."""


def page(
    visit: Visit, template: str, *, title: str, status: int = 200, headers: dict[str, str] | None = None, **values: Any
) -> Response:
    """Return a page. `values` are those of its template."""
    return fragment(visit, template, status=status, headers=headers, title=title, **values)


def counts_page(
    view: View, template: str, *, title: str, tab: str, headers: dict[str, str] | None = None, **values: Any
) -> Response:
    """Return a page of counts, with the status 400 if a parameter is invalid."""
    shared = {"tab": tab, "zone_name": view.zone.key, "view": view, "presets": PRESETS, "period_keys": KEYS}
    return page(view.visit, template, title=title, status=view.status, headers=headers, **shared, **values)


def fragment(
    visit: Visit, template: str, *, status: int = 200, headers: dict[str, str] | None = None, **values: Any
) -> Response:
    """Return a part of a page, for htmx."""
    html = environment().get_template(template).render(_globals(visit) | values)
    return Response(html, status, HEADERS | (headers or {}), "text/html")


def redirect(visit: Visit, path: str, **parameters: str | None) -> Response:
    """Redirect to a page of the service, which the browser requests with GET, also after a POST."""
    target = visit.href(path, **parameters)
    return RedirectResponse(target, 303)


@cache
def environment() -> jinja2.Environment:
    """Return the environment of all templates. A misspelled name is an error."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=jinja2.select_autoescape(["html"]),  # a recipe is a text, which its page escapes
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )


def _globals(visit: Visit) -> dict[str, Any]:
    """Return the names that every template has: the visit, addresses, and formats of the viewer's locale and zone."""
    prefix = links.prefix(visit.base_url)
    return {
        "visit": visit,
        "href": visit.href,
        "base": visit.base,
        "readable": links.readable,
        "asset": lambda name: prefix + assets()[name].address,
        "number": lambda value: locale.number(value, visit.locale),
        "compact": lambda value: locale.compact(value, visit.locale),
        "percent": lambda value: locale.percent(value, visit.locale),
        "change": lambda now, before: locale.change(now, before, visit.locale),
        "day": lambda value: locale.day(value, visit.locale),
        "moment": lambda value: locale.moment(value, visit.zone, visit.locale),
        "clock": lambda value: locale.clock(value, visit.zone, visit.locale),
        "ago": lambda value: locale.ago(value, visit.now),
        "duration": locale.duration,
        "kind_names": TRAFFIC,
        "sentence": sentence,
    }
