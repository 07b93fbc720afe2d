"""Addresses of pages: the prefix of a proxy, the scheme and host that visitors use, and paths as people read them."""

import re
import unicodedata
from collections.abc import Mapping
from urllib.parse import quote, unquote_to_bytes, urlencode, urlsplit

from markupsafe import Markup, escape
from starlette.requests import Request

_ESCAPES = re.compile("(?:%[89A-F][0-9A-F])+")
"""Escapes of characters that are not ASCII. Escapes of ASCII characters stay, because they have another meaning than
the characters: `%2F` does not separate the parts of a path, and `%25` does not begin an escape."""
_LOOKALIKES = frozenset("аеорсухіјѕԛԝһӏквнмтАВЕКМНОРСТУХІЈЅαικνορτυχγΑΒΕΖΗΙΚΜΝΟΡΤΥΧノ丿〇一ーյսոօհ")
"""Letters that look like ASCII characters. A word of such letters alone stays encoded."""
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u01c0\u01c1\u01c2\u01c3")
"""Letters and marks that are not visible, or look like punctuation."""
_SCRIPTS_OF_WORDS = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU")
"""Scripts with letters that look like ASCII letters: a word of both stays encoded."""


def href(base_url: str, path: str, parameters: Mapping[str, str | None]) -> str:
    """Return the address of a page of this service for a link: the prefix of `base_url`, the path and the query.

    `path` is not encoded yet. A parameter with the value None is left out.
    """
    query = urlencode({name: value for name, value in parameters.items() if value is not None})
    return prefix(base_url) + quote(path, safe="/:@!$&'()*+,;=-._~") + (f"?{query}" if query else "")


def prefix(base_url: str) -> str:
    """Return the path of `base_url` without a slash at its end. The path is empty unless a proxy adds a prefix."""
    return urlsplit(base_url).path.rstrip("/")


def public_url(request: Request, base_url: str) -> str:
    """Return the address of the service for visitors, without a slash at its end."""
    return base_url.rstrip("/") or f"{request.url.scheme}://{request.url.netloc}"


def is_https(request: Request, base_url: str) -> bool:
    """Return whether visitors use HTTPS, which a proxy in front of the service may provide."""
    return urlsplit(public_url(request, base_url)).scheme == "https"


def readable(path: str) -> Markup:
    """Return a stored path as HTML for people: `/caf%C3%A9` as `/café`. Two paths never look the same.

    Control characters, spaces, characters that change the direction of text, and words that could be read as ASCII
    stay encoded. A part in a script from right to left is isolated, so that the parts keep their order. A line of a
    long path ends after a slash or a hyphen, if possible.
    """
    return Markup("/<wbr>").join(_part(_ESCAPES.sub(_decode, part)) for part in path.split("/"))


def _part(text: str) -> Markup:
    is_right_to_left = not text.isascii() and any(unicodedata.bidirectional(each) in ("R", "AL") for each in text)
    breakable = escape(text).replace("-", Markup("-<wbr>"))
    return Markup("<bdi>{}</bdi>").format(breakable) if is_right_to_left else breakable


def _decode(escapes: re.Match[str]) -> str:
    try:
        text = unquote_to_bytes(escapes[0]).decode()
    except UnicodeDecodeError:
        return escapes[0]
    before, after = escapes.string[: escapes.start()], escapes.string[escapes.end() :]
    return text if _is_distinct(text, before[-1:].isalnum() or after[:1].isalnum()) else escapes[0]


def _is_distinct(text: str, is_beside_ascii: bool) -> bool:
    """Return whether a text without ASCII can be read in one way only."""
    if unicodedata.normalize("NFKC", text) != text or unicodedata.category(text[0])[0] == "M":
        return False
    is_mixed = is_beside_ascii and any(unicodedata.name(each, "").startswith(_SCRIPTS_OF_WORDS) for each in text)
    return all(map(_is_visible, text)) and not _LOOKALIKES.issuperset(text) and not is_mixed


def _is_visible(character: str) -> bool:
    """Return whether a character is a letter, a mark of a letter, or a pictograph."""
    category = unicodedata.category(character)
    is_mark = category in ("Mn", "Mc") and not "\ufe00" <= character <= "\ufe0f"
    is_letter = category in ("Lu", "Ll", "Lt", "Lo", "Lm") and not "\u0250" <= character <= "\u02ff"
    is_pictograph = "\U0001f300" <= character <= "\U0001faff"
    return (is_mark or is_letter or is_pictograph) and character not in _INVISIBLE
