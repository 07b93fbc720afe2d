"""Columns of `hits` that are read from the query of a page's address: `warehouse.columns.hits.PARAMETERS`.

A column has the first value of the parameter of its name. `utm_source` falls back to `ref` and `source`, which many
sites add to their links. `click` names a parameter of an advertisement or of Meta, whose value identifies a person.
"""

import re
from collections.abc import Mapping
from urllib.parse import parse_qs

from ingest.channels.channels import CLICKS
from ingest.hits.url import UNSTORABLE
from warehouse.columns.hits import PARAMETERS

Parameters = Mapping[str, str]
"""Values by column."""
NO_PARAMETERS: Parameters = {}
_NAMES: Mapping[str, tuple[str, ...]] = {name: (name,) for name in PARAMETERS if name != "click"} | {
    "utm_source": ("utm_source", "ref", "source")
}
"""Names of the parameters of a column, the first ones before the others."""
PATTERN = f"(?:^|[?&])(?:{'|'.join(map(re.escape, (*sum(_NAMES.values(), ()), *CLICKS)))})="
"""Regular expression that a query with one of the parameters matches."""
_MAY_HAVE = re.compile(PATTERN).search


def parameters(target: str) -> Parameters:
    """Return the values in the query of a URL or path by column, without those that are empty."""
    query = target.partition("#")[0].partition("?")[2]
    if not _MAY_HAVE(query):
        return NO_PARAMETERS
    texts = {name: UNSTORABLE.sub("", values[0]) for name, values in parse_qs(query, max_num_fields=None).items()}
    columns = {column: next(filter(None, map(texts.get, names)), None) for column, names in _NAMES.items()}
    columns["click"] = next((click for click in CLICKS if click in texts), None)
    return {column: text for column, text in columns.items() if text}
