"""The transport of responses. uvicorn writes their heads alone, and uvloop sends each write at once: two packets."""

import asyncio

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class ResponseWriter:
    """The part of a connection's transport that uvicorn's responses use. A head is sent with the start of its body."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head: bytes | None = None
        """The unsent head of a response; None before the head, and empty once it is sent."""
        self.is_closing = transport.is_closing
        self.is_refusal = False
        """The client may still send: closed with unread bytes, a connection is reset, and the response is lost."""

    def write(self, data: bytes) -> None:
        if self._head:
            self._transport.write(self._head + data)  # Python 3.13.1 does not pause after writelines
            self._head = b""
        elif self._head is None and data != CONTINUE:
            self._head = data
        else:
            self._transport.write(data)

    def end(self) -> None:
        """End a response, and send its head if it has no body. The next write is a head."""
        if self._head:
            self._transport.write(self._head)
        self._head = None

    def close(self) -> None:
        self.end()
        (self._transport.write_eof if self.is_refusal else self._transport.close)()
