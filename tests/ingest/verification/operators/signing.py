"""Signed requests for the tests, and the key directory of their signer."""

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from http_message_signatures import HTTPMessageSigner, HTTPSignatureKeyResolver, algorithms

from ingest.hits.evidence import Evidence
from ingest.verification.public_keys import JsonWebKey, thumbprint

HOST = "agent.bot.goog"
CREATED_S = 1_790_000_000
URL = "https://example.com/guide?page=2"
AGENTS = {"dictionary": f'g="https://{HOST}"', "string": f'"https://{HOST}"'}
"""Both forms of Signature-Agent."""
COVERED = {
    "dictionary": ("@authority", '"signature-agent";key="g"'),
    "string": ("@authority", "@method", "@path", "signature-agent"),  # as ChatGPT's agent sends it
}


class Signer:
    """Owner of an Ed25519 key."""

    def __init__(self, seed: int = 1) -> None:
        self.private = Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)
        x = base64.urlsafe_b64encode(self.private.public_key().public_bytes_raw()).rstrip(b"=").decode()
        self.jwk = {"kty": "OKP", "crv": "Ed25519", "x": x}
        self.key_id = thumbprint(JsonWebKey(**self.jwk))

    def directory(self, **members: object) -> bytes:
        """Return the content of a key directory with the key; `members` are added to the key."""
        return json.dumps({"keys": [self.jwk | members]}).encode()

    def sign(
        self,
        *,
        url: str = URL,
        agent: str | None = AGENTS["dictionary"],
        covered: tuple[str, ...] = COVERED["dictionary"],
        created_s: int = CREATED_S,
        lifetime_s: int = 3600,
        tag: str | None = "web-bot-auth",
        key_id: str | None = None,
        label: str = "g",
        more: Mapping[str, str] | None = None,
    ) -> Mapping[str, str]:
        """Return the headers of a signed GET request. `more` are headers beside those of the signature."""
        message = Message(url, {**(more or {}), **({"Signature-Agent": agent} if agent is not None else {})})
        signer = HTTPMessageSigner(signature_algorithm=algorithms.ED25519, key_resolver=PrivateKeys(self.private))
        signer.sign(
            message,
            key_id=key_id or self.key_id,
            created=time_of(created_s),
            expires=time_of(created_s + lifetime_s),
            tag=tag,
            label=label,
            covered_component_ids=covered,
        )
        return {name.lower(): value for name, value in message.headers.items()}

    def request(self, **options: object) -> Evidence:
        """Return a signed GET request of URL with the options of `sign`."""
        return Evidence(headers=self.sign(**options), url=URL)  # type: ignore[arg-type]


class Message:
    """Unsigned GET request, as the library signs it."""

    method = "GET"

    def __init__(self, url: str, headers: dict[str, str]) -> None:
        self.url = url
        self.headers = headers


class PrivateKeys(HTTPSignatureKeyResolver):
    """Resolver of one private key, whatever its id."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self.private = private

    def resolve_private_key(self, key_id: str) -> Ed25519PrivateKey:
        return self.private


def time_of(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
