"""Normalisation of URLs and paths to the one spelling under which page views are counted.

Query and fragment are removed. A path has one leading slash, no trailing slash (except `/` itself) and no `index.html`
at the end. Percent-encoding is normalised by RFC 3986 section 6.2.2: every character that a path may not contain is
encoded, and so is a `*` at the end."""

import re
from functools import lru_cache
from urllib.parse import quote, urlsplit

from ingest.errors import InvalidField

PATH_CHARACTERS_MAX = 2_048
"""Maximum length of a stored path; a longer one is cut."""
URL_CHARACTERS_MAX = 8_192
HOST_CHARACTERS_MAX = 253
"""Maximum length of a host name (RFC 1035, section 2.3.4)."""
CACHED_URLS = 4_096

_PLAIN = re.compile(r"(?:/[A-Za-z0-9._~-]+)+")
_URL = re.compile(r"https?://[^/?#\s]+(?=[/?#]|\Z)", re.IGNORECASE)
_QUERY_OR_FRAGMENT = re.compile(r"[?#]")
_PERCENT = re.compile(r"%([0-9A-Fa-f]{2})?")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_PATH_CHARACTERS = "/:@!$&'()*+,;=-._~%"
_INDEX = "/index.html"
_PARTIAL = re.compile(
    "(?:%[C-F][0-9A-F]|%[EF][0-9A-F]%[89AB][0-9A-F]|%F[0-9A-F](?:%[89AB][0-9A-F]){2})?(?:%[0-9A-F]?)?\\Z"
)
"""The beginning of a percent-encoded UTF-8 character, or of an escape, at the end of a cut path."""
UNSTORABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
"""Control characters and lone surrogates, which no stored text may contain."""


def path_of_url(url: str) -> str:
    """Return the normalised path of an absolute http or https URL. Raises InvalidField `url`."""
    _require_storable("url", url)
    host = _URL.match(url)
    if host is None:
        raise InvalidField("url", "must be an absolute http or https URL; send a bare path as `path`")
    return _normalize(url[host.end() :])


def normalize_path(path: str) -> str:
    """Return the normalised form of a path with or without a query and a fragment. Raises InvalidField `path`."""
    if len(path) <= PATH_CHARACTERS_MAX and _PLAIN.fullmatch(path) and not path.endswith(_INDEX):
        return path
    if _URL.match(path):
        raise InvalidField("path", "is an absolute URL; send it as `url`")
    _require_storable("path", path)
    return _normalize(path)


def cut_path(path: str, characters_max: int) -> str:
    """Return a normalised path that is too long without its end: whole characters, and normalised again."""
    short = _PARTIAL.sub("", path[:characters_max])
    while short.endswith(("/", "*", _INDEX)):
        short = short.removesuffix(_INDEX).rstrip("/*")
    return short or "/"


def normalize_filter(text: str) -> str:
    """Return a normalised path, prefix (`/docs/*`) or part of a path (`*install*`), as a filter of reports.

    Raises:
        InvalidField: see `normalize_path` and `normalize_prefix`; or a part has no `*` at its end.
    """
    if text.startswith("*") and len(text) > 1:
        if not text.endswith("*"):
            raise InvalidField("path", "must be a part of a path between two `*`, such as *install*")
        _require_storable("path", text)
        return f"*{require_short('path', _encode('x' + text[1:-1])[2:])}*"
    if text.endswith("*"):
        return normalize_prefix(text[:-1]) + "*"
    return require_short("path", normalize_path(text))


def normalize_prefix(prefix: str) -> str:
    """Return the prefix of normalised paths in the same spelling: with a leading slash, and percent-encoded.

    A trailing slash stays: `/docs/` is a prefix of `/docs/api`, but not of `/docs`.

    Raises:
        InvalidField: no normalised path begins with `prefix`.
    """
    if not prefix:
        return "/"
    _require_storable("path", prefix)
    if _URL.match(prefix) or _QUERY_OR_FRAGMENT.search(prefix):
        raise InvalidField("path", "is a URL, or has a query or a fragment, which no path has")
    return require_short("path", _encode(prefix))


def _require_storable(field: str, text: str) -> None:
    if not text:
        raise InvalidField(field, "must not be empty")
    if len(text) > URL_CHARACTERS_MAX:
        raise InvalidField(field, f"has {len(text)} characters; at most {URL_CHARACTERS_MAX} are accepted")
    if UNSTORABLE.search(text):
        raise InvalidField(field, "has a control character or a lone surrogate")


def require_short(field: str, path: str) -> str:
    """Return a normalised path, or raise InvalidField if no stored path is as long."""
    if len(path) > PATH_CHARACTERS_MAX:
        raise InvalidField(
            field, f"has a normalised path of {len(path)} characters; at most {PATH_CHARACTERS_MAX} are accepted"
        )
    return path


def _normalize(target: str) -> str:
    path = _encode(_QUERY_OR_FRAGMENT.split(target, maxsplit=1)[0])
    while path != "/" and path.endswith(("/", _INDEX)):
        path = path.removesuffix(_INDEX).rstrip("/") or "/"
    # A filter that ends in `*` is a prefix, and could not name only this path.
    return path.removesuffix("*") + "%2A" if path.endswith("*") else path


def _encode(path: str) -> str:
    """Return a path with one leading slash and in the normalised percent-encoding."""
    return quote(_PERCENT.sub(_normalize_escape, "/" + path.lstrip("/")), safe=_PATH_CHARACTERS)


def _normalize_escape(match: re.Match[str]) -> str:
    digits = match[1]
    if digits is None:
        return "%25"
    character = chr(int(digits, 16))
    return character if character in _UNRESERVED else "%" + digits.upper()


@lru_cache(CACHED_URLS)
def host(url: str) -> str | None:
    """Return the host of a URL in lower case, or None if the text has no host, or one longer than names can be."""
    try:
        name = urlsplit(url).hostname
    except ValueError:
        return None
    name = (name or "").removesuffix(".")
    return name if 0 < len(name) <= HOST_CHARACTERS_MAX else None
