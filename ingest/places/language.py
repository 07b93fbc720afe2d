"""First language of an `Accept-Language` header."""

import re
from functools import lru_cache

_TAG = re.compile(r"\s*([a-zA-Z]{2,3})(?:-[a-zA-Z]{4})?(?:-([a-zA-Z]{2}))?(?:-[a-zA-Z0-9]{1,8})*\s*(?:[;,]|\Z)")


_CHARACTERS = 64
"""Number of characters of a header that are read: a stranger's header may have 64 KiB, and the cache has thousands."""


def language(accept_language: str | None) -> str | None:
    """Return the first language as `en` or `pt-BR`: the primary subtag and the region (RFC 5646, section 2.1).

    A browser sends the languages in the person's order. A header that begins with anything else, as with `*`, has none.
    """
    return _language(accept_language[:_CHARACTERS]) if accept_language else None


@lru_cache(4_096)
def _language(accept_language: str) -> str | None:
    tag = _TAG.match(accept_language)
    if tag is None:
        return None
    primary, region = tag[1].lower(), tag[2]
    return f"{primary}-{region.upper()}" if region else primary
