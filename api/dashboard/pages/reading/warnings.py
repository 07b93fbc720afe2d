"""The warnings of the coverage as pages show them."""

import re
from collections.abc import Iterable, Iterator
from datetime import date

from babel import Locale

from api.dashboard.web import locale
from api.dashboard.web.view import SOURCES

_NAMES = re.compile(rf"^({'|'.join(SOURCES)})(?: and ({'|'.join(SOURCES)}))?")
_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")


def readable(warnings: Iterable[str], viewer: Locale) -> Iterator[str]:
    """Yield the warnings of the coverage with the names of sources and the days as the viewer's pages show them."""
    for warning in warnings:
        named = _NAMES.sub(
            lambda match: " and ".join(f"“{SOURCES[name]}”" for name in match.groups() if name), warning, count=1
        )
        dated = _DATE.sub(lambda match: locale.day(date.fromisoformat(match[0]), viewer), named)
        yield dated.replace(" hit ", " view ") + "."
