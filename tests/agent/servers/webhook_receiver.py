"""HTTP server that receives webhook messages."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Receiver:
    """Receiver that responds with `statuses` in order, and then with the last one, once `may_respond` is set.

    `messages` has the headers, with names in lower case, and the body of each request.
    """

    statuses: list[int]
    url: str = ""
    may_respond: threading.Event = field(default_factory=threading.Event)
    messages: list[tuple[dict[str, str], bytes]] = field(default_factory=list)


@contextmanager
def webhook_receiver(*statuses: int) -> Iterator[Receiver]:
    """Run a receiver on a port of the loopback interface."""
    receiver = Receiver(list(statuses))
    receiver.may_respond.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            receiver.messages.append(({name.lower(): value for name, value in self.headers.items()}, body))
            receiver.may_respond.wait(30)
            status = receiver.statuses.pop(0) if len(receiver.statuses) > 1 else receiver.statuses[0]
            self.send_response(status)
            if status == 302:
                self.send_header("Location", f"{receiver.url}/elsewhere")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        receiver.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
