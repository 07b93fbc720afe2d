"""A request that a log tells of, into a hit, or the reason why it is no page view."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from typing import Literal, NamedTuple

from ingest.errors import InvalidField, InvalidLine
from ingest.hits import url
from ingest.hits.hit import USER_AGENT_CHARACTERS_MAX, Hit, utm_source

Skip = Literal["malformed", "not_a_request", "method", "status", "excluded", "not_a_page"]
"""Why a line is no page view; where several hold, the first of these."""

NOT_PAGES = frozenset(
    (
        "css js mjs cjs map wasm "
        "png jpg jpeg gif svg webp avif ico bmp tif tiff heic "
        "woff woff2 ttf otf eot "
        "mp3 mp4 m4a m4v webm ogg oga ogv wav flac mov avi mkv "
        "zip gz tgz bz2 xz zst 7z rar tar dmg exe msi deb rpm pkg iso apk jar bin "
        "xml rss atom json jsonl csv"
    ).split()
)
"""Extensions of what a page loads or links to: styles, scripts, images, fonts, media, archives, feeds, data."""
NOT_PAGE_PATHS = frozenset({"/robots.txt", "/ads.txt", "/humans.txt"})
NOT_PAGE_FOLDER = "/.well-known/"


class Request(NamedTuple):
    """What a well-formed line says. `ts_us` is microseconds since 1970; a field logged as `-` is empty."""

    ts_us: int
    method: str
    target: str
    status: int
    referrer: str
    user_agent: str


Parse = Callable[[bytes], Request | None]
"""Reads one line, with or without its line end: None where it tells of no request. Raises InvalidLine."""


@dataclass(frozen=True, slots=True)
class Pages:
    """What an owner says of which paths are pages: globs of the whole normalised path, in its case.

    `*` is any run of characters, `/` included, `?` is one, `[...]` one of a set. `exclude` is asked first; what
    `include` matches is a page, whatever its extension or name.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


DEFAULT_PAGES = Pages()


def page_view(request: Request, pages: Pages = DEFAULT_PAGES) -> Hit | Skip:
    """The hit of a request that is a page view: a GET, answered 2xx or 304, of a page.

    Raises:
        InvalidLine: its target or another field is over a limit of `ingest.hits.hit`.
    """
    if request.method != "GET":
        return "method"
    if not (200 <= request.status < 300 or request.status == 304):
        return "status"
    normalised = _path(request.target)
    if reason := no_page(normalised, pages):
        return reason
    if len(request.user_agent) > USER_AGENT_CHARACTERS_MAX or len(request.referrer) > url.URL_CHARACTERS_MAX:
        raise InvalidLine("its user agent or referrer is too long")
    return Hit(
        path=normalised,
        ts_us=request.ts_us,
        user_agent=request.user_agent,
        referrer=request.referrer or None,
        utm_source=utm_source(request.target),
        format=None,
        status=request.status,
        event_id=None,
    )


def no_page(normalised: str, pages: Pages) -> Literal["excluded", "not_a_page"] | None:
    """Why a normalised path is no page; None where it is one."""
    if pages.exclude and _any_of(pages.exclude).match(normalised):
        return "excluded"
    if not _is_not_page(normalised) or (pages.include and _any_of(pages.include).match(normalised)):
        return None
    return "not_a_page"


def _path(target: str) -> str:
    try:
        return url.of_url(target) if target.lower().startswith(("http://", "https://")) else url.of_path(target)
    except InvalidField as error:
        raise InvalidLine(error.reason) from None


def _is_not_page(normalised: str) -> bool:
    _, dot, extension = normalised.rpartition("/")[2].rpartition(".")
    return (
        bool(dot and extension.lower() in NOT_PAGES)
        or normalised in NOT_PAGE_PATHS
        or normalised.startswith(NOT_PAGE_FOLDER)
    )


@lru_cache
def _any_of(globs: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, globs)))
