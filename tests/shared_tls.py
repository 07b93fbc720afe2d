"""TLS contexts that the HTTP clients of a test's process share.

httpx reads all certificates of the system for each client, also for one of plain HTTP: 20 ms for each `httpx.get`.
"""

import os
import ssl
from typing import Any

from httpx._transports import default

_create = default.create_ssl_context
_contexts: dict[tuple[bool, str | None, str | None], ssl.SSLContext] = {}


def enable() -> None:
    """Let all clients with the default certificates share one context, until the process ends."""
    default.create_ssl_context = _shared


def _shared(verify: Any = True, cert: Any = None, trust_env: bool = True) -> ssl.SSLContext:
    if verify is not True or cert is not None:
        return _create(verify, cert, trust_env)
    key = (trust_env, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
    if key not in _contexts:
        _contexts[key] = _create(verify, cert, trust_env)
    return _contexts[key]
