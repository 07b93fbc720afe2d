"""HTTP server of the forge doubles and of the git server."""

import sys
from http.server import ThreadingHTTPServer


class Listening(ThreadingHTTPServer):
    """Threaded HTTP server whose threads do not outlive the tests."""

    daemon_threads = True

    def handle_error(self, *arguments: object) -> None:
        """Print nothing about a connection that the client closed, which some tests cause."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(*arguments)  # type: ignore[arg-type]
