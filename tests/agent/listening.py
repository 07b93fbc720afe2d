"""The HTTP server beneath the doubles of a code host and of a git server."""

import sys
from http.server import ThreadingHTTPServer


class Listening(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *arguments: object) -> None:
        """Of connections that the other end gave up, which is what some tests are about."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(*arguments)  # type: ignore[arg-type]
