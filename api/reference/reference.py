"""The reference of a service: its OpenAPI document as JSON and as an HTML page."""

import re
from collections.abc import Sequence
from functools import cached_property
from html import escape

import msgspec
from cachetools import LRUCache

from api.http.operation import ADDRESS, Json, Operation
from api.reference import page
from api.reference.openapi import description

ANCHOR = '"/docs#'
"""Beginning of a problem type in JSON; a base URL is inserted after the quote."""
SNIPPET = '<script defer src=".../beacon.js"'
"""Beginning of the script tag in the description; the page shows the service's address in place of the dots."""
PAGES_MAX = 4
"""Maximum number of addresses whose pages are cached: the client chooses its Host."""
PLAIN_ADDRESS = re.compile(r"https?://[A-Za-z0-9.:\[\]/_~-]{1,300}")
"""An address that a shell command can contain without quotes. The page repeats it: one of 60 kB made a page of MB."""


class Reference:
    """The OpenAPI document of the operations, in both forms. Each form is rendered once for an address."""

    def __init__(self, operations: Sequence[Operation], base_url: str = "") -> None:
        self._operations = operations
        self._base_url = base_url
        self._pages: LRUCache[str, bytes] = LRUCache(PAGES_MAX)

    @cached_property
    def document(self) -> Json:
        """Return the OpenAPI document, without the base URL."""
        return description(self._operations)

    @cached_property
    def json(self) -> bytes:
        """Return the OpenAPI document as JSON, with the server and the problem types of the base URL."""
        if not self._base_url:
            return msgspec.json.encode(self.document)
        encoded = msgspec.json.encode({**self.document, "servers": [{"url": self._base_url}]})
        return encoded.replace(ANCHOR.encode(), self._anchor.encode())

    def html(self, address: str) -> bytes:
        """Return the HTML page. Its samples use the base URL, or `address` if there is no base URL."""
        address = self._base_url or address
        address = address if PLAIN_ADDRESS.fullmatch(address) else ADDRESS
        if (known := self._pages.get(address)) is None:
            known = self._pages[address] = self._with_address(address).encode()
        return known

    def _with_address(self, address: str) -> str:
        html = self._html.replace(ADDRESS, address).replace(escape(SNIPPET), escape(SNIPPET.replace("...", address)))
        return html.replace(escape(ANCHOR), escape(self._anchor))

    @cached_property
    def _html(self) -> str:
        return page.render(self.document, self._operations)

    @property
    def _anchor(self) -> str:
        return f'"{self._base_url}/docs#'
