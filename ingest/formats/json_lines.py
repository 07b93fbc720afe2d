"""Parser of logs with one JSON object per line, as servers and edge networks write them.

A line that is not UTF-8 is decoded as Latin-1. If a log has no user agent, all its lines are invalid: without a user
agent, people and bots cannot be distinguished.
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import msgspec

from ingest.errors import InvalidLine
from ingest.formats.fields import decode, storable, time_us
from ingest.formats.json_products import Product
from ingest.formats.request import Request

REQUEST_IDS_MAX = 65_536
"""Maximum number of request ids that the parser of one log remembers."""


class JsonParser:
    """Parser of one log of a product.

    If the product has request ids, several lines may be about one request, and only the first of these lines counts.
    The parser remembers the last REQUEST_IDS_MAX ids.
    """

    def __init__(self, product: Product) -> None:
        self.product = product
        self._request_ids: OrderedDict[str, None] = OrderedDict()  # cachetools.FIFOCache takes ten times as long

    def __call__(self, line: bytes) -> Request | None:
        """Parse one line; return None if it records no request, or repeats one. Raises InvalidLine."""
        fields = self.fields(line)
        return None if fields is None or self.is_repeated(fields) else self._request(fields)

    def parse_new(self, line: bytes) -> Request | None:
        """Parse one line as `__call__` does, without checking whether an earlier line had its request id."""
        fields = self.fields(line)
        return None if fields is None else self._request(fields)

    def fields(self, line: bytes) -> Any | None:
        """Return the decoded fields of a line; None if it records no request. Raises InvalidLine."""
        product, text = self.product, decode(line)
        if not product.is_request(product.kind(_decode(product.line, text))):
            return None
        return _decode(product.request, text)

    def is_repeated(self, fields: Any) -> bool:
        """Remember the request id of a line, and return whether an earlier line had the same one."""
        request_id = None if self.product.request_id is None else self.product.request_id(fields)
        if request_id is None:
            return False
        if request_id in self._request_ids:
            return True
        self._request_ids[request_id] = None
        if len(self._request_ids) > REQUEST_IDS_MAX:
            self._request_ids.popitem(last=False)
        return False

    def _request(self, fields: Any) -> Request:
        logged = self.product.logged(fields)
        request: Iterator[Any] = (storable(each) if isinstance(each, str) else each for each in logged[1:])
        return Request(time_us(logged.time), *request)


def _decode(decoder: msgspec.json.Decoder[Any], text: str) -> Any:
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:  # RecursionError: ten thousand brackets in one line
        raise InvalidLine(f"not a line of this format: {error}") from None
