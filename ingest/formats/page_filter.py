"""Filter that turns the request of a log line into a hit, or returns the reason why the line is skipped."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from typing import Literal

from ingest.errors import InvalidField, InvalidLine
from ingest.formats.request import Request
from ingest.hits import url
from ingest.hits.evidence import ACCEPT_CHARACTERS_MAX, ADDRESS_CHARACTERS_MAX, Evidence
from ingest.hits.hit import Hit, within_limits
from ingest.hits.parameters import parameters
from ingest.places import country
from ingest.places.language import language
from warehouse.columns import kinds
from warehouse.columns.kinds import NOT_PAGE_FOLDER, is_asset, is_not_page

Skip = Literal["malformed", "not_a_request", "method", "status", "excluded", "not_a_page", "time"]
"""Reasons why a line is skipped, in the order of their checks; the first one that applies is counted.

A target over its limit makes a line malformed, too, but only if the request has the method and status of a page view.
"""
ERRORS = range(400, 600)
"""HTTP statuses of errors."""

ASSET_STATUSES = (200, 206, 304)
"""Statuses of a load of an asset: whole, a part, or unchanged since the copy in the browser's cache."""
ASSET = ""
"""Path of the load of an asset. The path of a page begins with a slash, the path of a download does not."""
_DOWNLOADS = "7z avi csv dmg doc docx exe gz key midi mov mp3 mp4 mpeg pdf pkg pps ppt pptx rar rtf txt wav wma wmv xls"
DOWNLOADS = frozenset(f"{_DOWNLOADS} xlsx zip".split())
"""Extensions of files that people download: Plausible's list (https://plausible.io/docs/file-downloads-tracking), with
doc and xls."""


@dataclass(frozen=True, slots=True)
class Pages:
    """The owner's globs of paths that are pages and of paths that are not.

    A glob is compared with the whole normalised path, case-sensitively. `*` matches any number of characters, including
    `/`; `?` matches one character; `[...]` matches one character of a set. `exclude` takes precedence over `include`. A
    path that matches `include` is a page, whatever its extension or name.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


DEFAULT_PAGES = Pages()

_SKIPPED_PATHS: Mapping[Skip, Callable[[str, Pages], bool]] = {
    "excluded": lambda path, pages: _matches(path, pages.exclude),
    "not_a_page": lambda path, pages: is_not_page(path) and not _matches(path, pages.include),
}
"""Conditions on the normalised path, by reason, in the order in which they are checked."""


def page_view(request: Request, pages: Pages = DEFAULT_PAGES) -> Hit | Skip:
    """Return the hit of a request for a page, or the reason why it is skipped.

    A request for an asset becomes a hit with the path ASSET, which only shows that a browser loaded the site. One for
    a download that is no page becomes a hit whose path lacks the leading slash.

    A request for a page that was answered with an error also becomes a hit, which `ingest.imports.rows` stores as an
    error or skips. Any other request that was answered with an error is skipped by its status, even if its target is
    too long.

    Raises:
        InvalidLine: the target is longer than `url.URL_CHARACTERS_MAX`.
    """
    if request.method != "GET":
        return "method"
    if request.status in ERRORS:
        try:
            failed = _hit(request, pages)
        except InvalidLine:
            return "status"
        return "status" if isinstance(failed, str) or failed.path[:1] != "/" else failed
    if not (200 <= request.status < 300 or request.status == 304):
        return "status"
    return _hit(request, pages)


def _hit(request: Request, pages: Pages) -> Hit | Skip:
    path = path_of(request.target)
    for reason, applies_to_path in _SKIPPED_PATHS.items():
        if applies_to_path(path, pages):
            if reason != "not_a_page" or not (is_asset(path) or is_download(path)):
                return reason
            path = ASSET if is_asset(path) else path[1:]
    hit = Hit(
        path=path,
        ts_us=request.ts_us,
        user_agent=request.user_agent,
        referrer=request.referrer or None,
        parameters=parameters(request.target),
        format=None,
        status=request.status,
        event_id=None,
        evidence=_evidence(request),
    )
    return within_limits(hit)


def _evidence(request: Request) -> Evidence:
    """Return the evidence that a log line has. A text over its limit is treated as not logged."""
    return Evidence(
        address=request.address if 0 < len(request.address) <= ADDRESS_CHARACTERS_MAX else None,
        accept=request.accept if 0 < len(request.accept) <= ACCEPT_CHARACTERS_MAX else None,
        country=country.known(request.country),
        language=language(request.language),
    )


def kind_of(request: Request) -> str:
    """Return the kind of a request, one of `kinds.KINDS`."""
    try:
        return kinds.kind_of(path_of(request.target))
    except InvalidLine:
        return "other"


def path_of(target: str) -> str:
    """Return the normalised path of a target. Raises InvalidLine beyond `url.URL_CHARACTERS_MAX`."""
    try:
        is_url = target.lower().startswith(("http://", "https://"))
        return url.path_of_url(target) if is_url else url.normalize_path(target)
    except InvalidField as error:
        raise InvalidLine(error.reason) from None


def is_download(path: str) -> bool:
    """Return whether people download the file. Programs read the texts of a site: robots.txt, llms.txt, sitemaps."""
    if len(path) > url.PATH_CHARACTERS_MAX:  # it would be cut
        return False
    extension = path.rpartition(".")[2].lower()
    return extension in DOWNLOADS - {"txt"} and "sitemap" not in path and not path.startswith(NOT_PAGE_FOLDER)


def _matches(path: str, globs: tuple[str, ...]) -> bool:
    return bool(globs) and _pattern(globs).match(path) is not None


@lru_cache
def _pattern(globs: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, globs)))
