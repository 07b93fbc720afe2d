"""The media type to answer with: https://www.rfc-editor.org/rfc/rfc9110#section-12.5.1"""

import re
from collections.abc import Sequence

from starlette.requests import Request

from api.http.problems import Problem

_QUALITY = re.compile(r"[01](\.\d{0,3})?")


def accepted(request: Request, kinds: Sequence[str], what: str) -> str:
    """The one of `kinds` that the client wants most, the first among equals.

    Raises:
        Problem: `not-acceptable`, naming all of them.
    """
    header = ", ".join(request.headers.getlist("accept")) or "*/*"
    best, best_weight = "", 0.0
    for kind in kinds:
        if (weight := _weight(kind, header)) > best_weight:
            best, best_weight = kind, weight
    if not best:
        raise Problem("not-acceptable", f"{what} can be had as {', '.join(kinds[:-1])} or {kinds[-1]}")
    return best


def _weight(kind: str, header: str) -> float:
    """The quality that an Accept header gives a media type; the most exact range that matches it decides."""
    group = kind.split("/", maxsplit=1)[0]
    found = (-1, 0.0)
    for each in header.split(","):
        name, *parameters = (part.strip().lower() for part in each.split(";"))
        exactness = {kind: 2, f"{group}/*": 1, "*/*": 0}.get(name)
        if exactness is not None:
            quality = next((part[2:] for part in parameters if part.startswith("q=")), "1")
            found = max(found, (exactness, float(quality) if _QUALITY.fullmatch(quality) else 1.0))
    return found[1]
