"""A URL or path into the one spelling under which its views count.

The rules: query and fragment cut; one leading slash; no trailing slash but for `/`; a last `index.html` dropped;
percent-encoding normalised as RFC 3986 section 6.2.2 says, with everything outside its path characters encoded.
"""

import re
from functools import lru_cache
from urllib.parse import quote, urlsplit

from ingest.errors import InvalidField

PATH_CHARACTERS_MAX = 2_048
URL_CHARACTERS_MAX = 8_192
CACHED_URLS = 4_096

_PLAIN = re.compile(r"(?:/[A-Za-z0-9._~-]+)+")
_URL = re.compile(r"https?://[^/?#\s]+(?=[/?#]|\Z)", re.IGNORECASE)
_CUT = re.compile(r"[?#]")
_PERCENT = re.compile(r"%([0-9A-Fa-f]{2})?")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_PATH_CHARACTERS = "/:@!$&'()*+,;=-._~%"
_INDEX = "/index.html"
UNSTORABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
"""Control characters and lone surrogates: no field may hold them."""


def of_url(url: str) -> str:
    """The normalised path of an absolute http or https URL.

    Raises:
        InvalidField: naming `url`.
    """
    checked = _checked("url", url)
    host = _URL.match(checked)
    if host is None:
        raise InvalidField("url", "must be an absolute http or https URL; send a bare path as `path`")
    return _short("url", _normalised(checked[host.end() :]))


def of_path(path: str) -> str:
    """The normalised form of a path, which may still carry a query and a fragment.

    Raises:
        InvalidField: naming `path`.
    """
    if len(path) <= PATH_CHARACTERS_MAX and _PLAIN.fullmatch(path) and not path.endswith(_INDEX):
        return path
    if _URL.match(path):
        raise InvalidField("path", "is an absolute URL; send it as `url`")
    return _short("path", _normalised(_checked("path", path)))


def _checked(field: str, text: str) -> str:
    if not text:
        raise InvalidField(field, "must not be empty")
    if len(text) > URL_CHARACTERS_MAX:
        raise InvalidField(field, f"has {len(text)} characters; at most {URL_CHARACTERS_MAX} are taken")
    if UNSTORABLE.search(text):
        raise InvalidField(field, "has a control character or a lone surrogate")
    return text


def _short(field: str, path: str) -> str:
    if len(path) > PATH_CHARACTERS_MAX:
        raise InvalidField(
            field,
            f"has a path of {len(path)} characters once normalised; at most {PATH_CHARACTERS_MAX} are taken",
        )
    return path


def _normalised(target: str) -> str:
    path = "/" + _CUT.split(target, maxsplit=1)[0].lstrip("/")
    path = quote(_PERCENT.sub(_escape, path), safe=_PATH_CHARACTERS)
    while path != "/" and path.endswith(("/", _INDEX)):
        path = path.removesuffix(_INDEX).rstrip("/") or "/"
    return path


def _escape(match: re.Match[str]) -> str:
    digits = match[1]
    if digits is None:
        return "%25"
    character = chr(int(digits, 16))
    return character if character in _UNRESERVED else "%" + digits.upper()


@lru_cache(CACHED_URLS)
def host(url: str) -> str | None:
    """The host of a URL in lower case; None where it has none."""
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
