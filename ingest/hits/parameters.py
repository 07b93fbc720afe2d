"""Query parameters of the addresses of pages that have columns in `hits`: `warehouse.columns.hits.PARAMETERS`."""

import re
from collections.abc import Mapping
from urllib.parse import parse_qs

from ingest.hits.url import UNSTORABLE
from warehouse.columns.hits import PARAMETERS

Parameters = Mapping[str, str]
"""First values of parameters, by name."""
NO_PARAMETERS: Parameters = {}
PATTERN = "|".join(f"{re.escape(name)}=" for name in PARAMETERS)
"""Regular expression that a query with one of the parameters matches."""
_MAY_HAVE = re.compile(PATTERN).search


def parameters(target: str) -> Parameters:
    """Return the parameters in the query of a URL or path, without those that are empty."""
    query = target.partition("#")[0].partition("?")[2]
    if not _MAY_HAVE(query):
        return NO_PARAMETERS
    values = parse_qs(query, max_num_fields=None)
    return {name: text for name in PARAMETERS if (text := UNSTORABLE.sub("", values.get(name, [""])[0]))}
