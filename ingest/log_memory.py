"""What was said of the texts of a log before: each request, user agent and referrer is looked at once."""

from collections.abc import Mapping
from functools import lru_cache, partial
from threading import Lock

import polars as pl

from ingest.errors import InvalidLine
from ingest.hit import USER_AGENT_CHARACTERS_MAX, Hit
from ingest.page_views import of_hits
from ingest.path import PATH_CHARACTERS_MAX, URL_CHARACTERS_MAX
from ingest.request import Pages, Request, Skip, page_view
from ingest.texts import Texts

KNOWN_MAX, KNOWN_BYTES_MAX = 300_000, 32 * 1024 * 1024
"""With as many texts a memory is full; each line of a log may have three that no other has."""
PAGE, METHOD, STATUS, EXCLUDED, NOT_A_PAGE, LEFT = range(6)
"""What comes of a line; one that is left is for the parser to say."""
SKIPPED: Mapping[Skip, int] = {
    "method": METHOD,
    "status": STATUS,
    "excluded": EXCLUDED,
    "not_a_page": NOT_A_PAGE,
}
NOTHING, NOT_LOGGED = 0, 1
_FIRST_TEXTS = ("", "-")
"""Of user agents and referrers."""
_REQUEST = r"^[A-Za-z]+ [!#-\[\]-~]+ HTTP/[0-9](?:\.[0-9])?$"
_ODD = r"[\\\x{FFFD}\x00-\x1f\x7f]"  # and what `path.UNSTORABLE` has, but surrogates, of which UTF-8 has none


class Memory:
    """What was said of requests, user agents and referrers before, under one choice of pages."""

    def __init__(self, pages: Pages) -> None:
        self.pages = pages
        self.stored = pl.Categorical(pl.Categories.random())
        """Of a column of paths or of utm_source."""
        # None of these holds this memory: a full one would be let go by the collector alone, which comes too late.
        self.targets = Texts(partial(_said_of_targets, pages=pages, stored=self.stored))
        self.requests = Texts(partial(_said_of_requests, targets=self.targets))
        self.user_agents = Texts(partial(_is_odd, characters_max=USER_AGENT_CHARACTERS_MAX), _FIRST_TEXTS)
        self.referrers = Texts(partial(_is_odd, characters_max=URL_CHARACTERS_MAX), _FIRST_TEXTS)
        self._lock = Lock()
        self._stored_count, self._stored_bytes = 0, 0

    def views_of(self, hits: list[Hit]) -> pl.DataFrame:
        """Page views that the parser of a format found, of one type with those that `read` finds."""
        views = of_hits(hits).with_columns(pl.col("path", "utm_source").cast(self.stored))
        for column in ("path", "utm_source"):
            self._note(views[column])
        return views.with_columns(
            user_agent=self.user_agents.numbers(views["user_agent"]).cat.to(self.user_agents.dtype),
            referrer=self.referrers.numbers(views["referrer"]).cat.to(self.referrers.dtype),
        )

    def _note(self, stored: pl.Series) -> None:
        """Count the bytes of those texts that are new: later ones have higher numbers."""
        numbers = stored.to_physical()
        highest: int = numbers.max() if numbers.count() else -1  # type: ignore[assignment]  # they are numbers
        with self._lock:
            new = stored.filter(numbers >= self._stored_count).unique().cast(pl.String)
            self._stored_bytes += int(new.str.len_bytes().sum())
            self._stored_count = max(self._stored_count, highest + 1)

    @property
    def is_full(self) -> bool:
        """Whether another is to be begun: it holds as much as one may, or what it holds is not whole."""
        each = self.targets, self.requests, self.user_agents, self.referrers
        size = sum(texts.bytes for texts in each) + self._stored_bytes
        count = sum(texts.count for texts in each)
        return count > KNOWN_MAX or size > KNOWN_BYTES_MAX or not all(texts.is_whole for texts in each)


def memory(pages: Pages) -> Memory:
    """That of all logs that are read so: for a stretch, whose views must be of one type. A full one is begun anew."""
    if _memory(pages).is_full:
        _memory.cache_clear()
    return _memory(pages)


_memory = lru_cache(1)(Memory)


def _said_of_requests(texts: pl.Series, targets: Texts) -> pl.DataFrame:
    """What comes of the line of each `GET target HTTP/version` if that is plain and was answered, and what is stored.

    A query that says nothing here is cut off first, so that there are few targets to look at.
    """
    text, target = pl.col("text"), pl.col("target")
    is_cut = (target.str.len_bytes() <= PATH_CHARACTERS_MAX) & ~target.str.contains("utm_source=", literal=True)
    asked = (
        texts.to_frame("text")
        .lazy()  # all at once: each step by itself takes as long as these few texts
        .with_columns(is_odd=~text.str.contains(_REQUEST), is_get=text.str.starts_with("GET "))
        .with_columns(target=pl.when(~pl.col("is_odd") & pl.col("is_get")).then(_part(text, " ", 1)))
        .with_columns(
            target=pl.when(is_cut & ~target.str.starts_with("?")).then(_part(target, "?", 0)).otherwise(target)
        )
        .collect()
    )
    said = targets.said_of(asked["target"])
    outcome = pl.when("is_odd").then(LEFT).when("is_get").then(said["outcome"]).otherwise(METHOD).cast(pl.UInt8)
    return asked.select(said["path"], said["utm_source"], outcome=outcome)


def _part(text: pl.Expr, separator: str, place: int) -> pl.Expr:
    """One of the parts of a text, at half of what a regular expression takes."""
    return text.str.splitn(separator, place + 2).struct[place]


def _said_of_targets(targets: pl.Series, pages: Pages, stored: pl.Categorical) -> pl.DataFrame:
    said = [_said_of(target, pages) for target in targets]
    return pl.DataFrame(said, {"path": stored, "utm_source": stored, "outcome": pl.UInt8()}, orient="row")


def _said_of(target: str, pages: Pages) -> tuple[str | None, str | None, int]:
    try:
        found = page_view(Request(0, "GET", "" if target == "-" else target, 200, "", ""), pages)
    except InvalidLine:
        return None, None, LEFT
    return (found.path, found.utm_source, PAGE) if isinstance(found, Hit) else (None, None, SKIPPED[found])


def _is_odd(texts: pl.Series, characters_max: int) -> pl.DataFrame:
    """Whether a referrer or user agent is not as it stands, or over its limit."""
    return pl.DataFrame({"is_odd": texts.str.contains(_ODD) | (texts.str.len_chars() > characters_max)})
