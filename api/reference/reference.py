"""The reference of a service: its OpenAPI document, with the address of the service."""

import re
from collections.abc import Sequence
from functools import cached_property

import msgspec

from api.http.operation import ADDRESS, Json, Operation
from api.reference.openapi import description

ANCHOR = '"/docs#'
"""Beginning of a problem type in JSON; a base URL is inserted after the quote."""
SNIPPET = '<script defer src=".../beacon.js"'
"""Beginning of the script tag in the description; the page shows the service's address in place of the dots."""
PLAIN_ADDRESS = re.compile(r"https?://[A-Za-z0-9.:\[\]/_~-]{1,300}")
"""An address that a shell command can contain without quotes. The page repeats it: one of 60 kB made a page of MB."""


class Reference:
    """The OpenAPI document of the operations."""

    def __init__(self, operations: Sequence[Operation], base_url: str = "") -> None:
        self.operations, self._base_url = operations, base_url

    @cached_property
    def document(self) -> Json:
        """Return the OpenAPI document, without the base URL."""
        return description(self.operations)

    @cached_property
    def json(self) -> bytes:
        """Return the OpenAPI document as JSON, with the server and the problem types of the base URL."""
        if not self._base_url:
            return msgspec.json.encode(self.document)
        encoded = msgspec.json.encode({**self.document, "servers": [{"url": self._base_url}]})
        return encoded.replace(ANCHOR.encode(), self._anchor.encode())

    def addressed(self, text: str, address: str) -> str:
        """Return a text with the base URL in its addresses and problem types; by default `address` in its addresses."""
        address = self._base_url or address
        address = address if PLAIN_ADDRESS.fullmatch(address) else ADDRESS
        text = text.replace(ANCHOR, self._anchor)
        return text.replace(ADDRESS, address).replace(SNIPPET, SNIPPET.replace("...", address))

    @property
    def _anchor(self) -> str:
        return f'"{self._base_url}/docs#'
