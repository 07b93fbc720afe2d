"""First language of an `Accept-Language` header."""

import re
from functools import lru_cache

_TAG = re.compile(r"\s*([a-zA-Z]{2,3})(?:-[a-zA-Z]{4})?(?:-([a-zA-Z]{2}))?(?:-[a-zA-Z0-9]{1,8})*\s*(?:[;,]|\Z)")


@lru_cache(4_096)
def language(accept_language: str | None) -> str | None:
    """Return the first language as `en` or `pt-BR`: the primary subtag and the region (RFC 5646, section 2.1).

    A browser sends the languages in the person's order. A header that begins with anything else, as with `*`, has none.
    """
    tag = _TAG.match(accept_language or "")
    if tag is None:
        return None
    primary, region = tag[1].lower(), tag[2]
    return f"{primary}-{region.upper()}" if region else primary
