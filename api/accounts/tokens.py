"""Random tokens of links and sessions, of which only hashes are stored.

A token has 256 random bits and cannot be guessed. Its hash therefore needs neither salt nor a slow function.
"""

import hashlib
import secrets

TOKEN_BYTES = 32


def new() -> str:
    """Return a random token of 43 characters that are safe in a URL and in a cookie."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def sha256(token: str) -> str:
    """Return the hash of a token as hexadecimal digits."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()
