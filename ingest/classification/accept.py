"""Rules about the Accept header of a request: the media types that AI agents ask for and no browser does."""

import re
from functools import lru_cache

import re2  # type: ignore[import-untyped]  # ships no types

from ingest.classification.rules import RULES, Rule

CACHED_HEADERS = 1_024
"""Maximum number of cached Accept headers. A site sees few distinct ones."""
MATCHED_CHARACTERS_MAX = 1_024
"""Number of characters of an Accept header that the rules read; the rest is ignored."""
_WEIGHT = re.compile(r"0(?:\.\d{0,3})?|1(?:\.0{0,3})?")  # RFC 9110, section 12.4.2
_PATTERNS = tuple((re2.compile(rule.pattern), rule) for rule in RULES.accept)


@lru_cache(CACHED_HEADERS)
def find(accept: str) -> tuple[str, Rule] | None:
    """Return the first media range with a positive weight that matches a rule, and the rule; or None."""
    for media_range in accept[:MATCHED_CHARACTERS_MAX].split(","):
        if "/" not in media_range:  # without this check, a header of commas alone takes 1.7 ms
            continue
        media_type, *parameters = (part.strip() for part in media_range.split(";"))
        for pattern, rule in _PATTERNS:
            if pattern.search(media_type) and _weight(parameters) > 0:
                return media_range.strip(), rule
    return None


def _weight(parameters: list[str]) -> float:
    """Return the weight among the parameters of a media range: 1 without a weight, 0 if it is invalid."""
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            return float(value) if _WEIGHT.fullmatch(value.strip()) else 0.0
    return 1.0
