"""The warnings of the coverage as pages show them."""

from collections.abc import Iterable

from babel import Locale

from api.dashboard.web import locale
from api.dashboard.web.view import SOURCES
from warehouse.report.source_warnings import SourceWarning

_NAMES = {source: f"“{name}”" for source, name in SOURCES.items()}


def readable(warnings: Iterable[SourceWarning], viewer: Locale) -> tuple[str, ...]:
    """Return the warnings as sentences, with the names of sources and the days as the viewer's pages show them."""
    return tuple(f"{each.text(_NAMES, lambda day: locale.day(day, viewer), 'view')}." for each in warnings)
