"""Content negotiation: the media type of a response (https://www.rfc-editor.org/rfc/rfc9110#section-12.5.1)."""

import re
from collections.abc import Sequence

from starlette.requests import Request

from api.http.problems import Problem

_QUALITY = re.compile(r"[01](\.\d{0,3})?")


def accepted(request: Request, media_types: Sequence[str], resource: str) -> str:
    """Return the media type with the highest quality in the Accept header; of several, the first in `media_types`.

    Raises:
        Problem: `not-acceptable`, with all media types of the resource.
    """
    header = ", ".join(request.headers.getlist("accept")) or "*/*"
    best, best_quality = "", 0.0
    for media_type in media_types:
        if (quality := _quality_of(media_type, header)) > best_quality:
            best, best_quality = media_type, quality
    if not best:
        available = f"{', '.join(media_types[:-1])} or {media_types[-1]}"
        raise Problem("not-acceptable", f"{resource} is available as {available}")
    return best


def _quality_of(media_type: str, header: str) -> float:
    """Return the quality of a media type in an Accept header, which the most specific matching range decides."""
    group = media_type.split("/", maxsplit=1)[0]
    best = (-1, 0.0)
    for each in header.split(","):
        name, *parameters = (part.strip().lower() for part in each.split(";"))
        specificity = {media_type: 2, f"{group}/*": 1, "*/*": 0}.get(name)
        if specificity is not None:
            quality = next((part[2:] for part in parameters if part.startswith("q=")), "1")
            best = max(best, (specificity, float(quality) if _QUALITY.fullmatch(quality) else 1.0))
    return best[1]
