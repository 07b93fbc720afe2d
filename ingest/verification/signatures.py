"""Check of Web Bot Auth signatures: HTTP Message Signatures (RFC 9421) with the tag `web-bot-auth`.

https://datatracker.ietf.org/doc/draft-ietf-webbotauth-httpsig-protocol/
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, NamedTuple
from urllib.parse import quote, urlsplit

import http_sf
import msgspec
from http_message_signatures import HTTPMessageVerifier, InvalidSignature
from http_message_signatures.resolvers import HTTPSignatureKeyResolver

from ingest.verification.directories import KeyDirectories
from ingest.verification.public_keys import JsonWebKey, PublicKey, usable_keys
from ingest.verification.signature_agents import signature_agents
from ingest.verification.verifier import Evidence

TAG = "web-bot-auth"
LIFETIME_S_MAX = 86_400
"""Maximum time from `created` to `expires`, in seconds."""
SKEW_S = 60
"""Maximum difference between the clocks of the sender and of the site, in seconds."""
FIELD_CHARACTERS_MAX = 8_192
"""Maximum length of each of the three headers. Parsing one of that length takes 1 ms."""
SIGNATURES_MAX = 4
"""Maximum number of signatures of a request with the tag."""

Outcome = Literal["valid", "known_key", "invalid", "unverified"]
_ORDER: tuple[Outcome, ...] = ("valid", "known_key", "invalid", "unverified")


class Signature(NamedTuple):
    """Outcome of a check. `host` is the host of Signature-Agent, or of the table of keys for `known_key`.

    `valid`: signed with a key of the host's directory. `known_key`: signed with a key of the table, which may have been
    withdrawn. `invalid`: the signature does not belong to the request, or breaks a rule of Web Bot Auth. `unverified`:
    no evidence, because the key, the URL or a covered header is not known, or Signature-Agent does not name a host.
    """

    outcome: Outcome
    host: str | None = None


class _Member(NamedTuple):
    """A member of Signature-Input: its label, its covered components with their parameters, and its parameters."""

    label: str
    components: tuple[tuple[object, Mapping[str, object]], ...]
    parameters: Mapping[str, Any]

    def covers(self, *names: str) -> bool:
        return any(name in names for name, _ in self.components)

    def lacks(self, headers: Mapping[str, str]) -> bool:
        """Return whether the signature covers a header that is not in `headers`: a server may forward only some."""
        return any(not str(name).startswith("@") and name not in headers for name, _ in self.components)


class _Message(NamedTuple):
    """Request as http-message-signatures reads it."""

    method: str
    url: str
    headers: Mapping[str, str]


class SignatureCheck:
    """Check of signatures against key directories and known keys, by default those of `signature_agents.toml`.

    Without `directories` a signature is at most `known_key`. Safe for use by several threads.
    """

    def __init__(
        self,
        directories: KeyDirectories | None = None,
        known_keys: Mapping[str, tuple[str, PublicKey]] | None = None,
        lifetime_s_max: int = LIFETIME_S_MAX,
    ) -> None:
        self._directories = directories
        self._known_keys = bundled_keys() if known_keys is None else known_keys
        self._lifetime_s_max = lifetime_s_max

    def check(self, request: Evidence, ts_us: int) -> Signature | None:
        """Return the best outcome of a request's signatures at its time; None without a signature with the tag."""
        headers = request.headers or {}
        inputs = headers.get("signature-input", "")
        if TAG not in inputs:
            return None
        if any(len(headers.get(name, "")) > FIELD_CHARACTERS_MAX for name in _FIELDS):
            return Signature("invalid")
        try:
            members = _members(inputs)
        except ValueError:
            return Signature("invalid")
        if not members:
            return None
        if len(members) > SIGNATURES_MAX:
            return Signature("invalid")
        return min((self._check(each, request, ts_us / 1e6) for each in members), key=lambda each: _RANK[each.outcome])

    def _check(self, member: _Member, request: Evidence, time_s: float) -> Signature:
        headers = request.headers or {}
        if "signature" not in headers or not self._is_allowed(member, headers, time_s):
            return Signature("invalid")
        host = _agent_host(member, headers.get("signature-agent"))
        if request.url is None or member.lacks(headers) or ("signature-agent" in headers and host is None):
            return Signature("unverified")
        outcome, host, key = self._find_key(host, member.parameters["keyid"], time_s)
        if key is None:
            return Signature("unverified", host)
        message = _Message(request.method.upper(), quote(request.url, safe=_SENT), headers)
        return Signature(outcome if _is_signed_by(key, member, message) else "invalid", host)

    def _is_allowed(self, member: _Member, headers: Mapping[str, str], time_s: float) -> bool:
        """Return whether the parameters and the covered components are those that Web Bot Auth requires."""
        created, expires = member.parameters.get("created"), member.parameters.get("expires")
        return (
            type(created) is int
            and type(expires) is int
            and 0 < expires - created <= self._lifetime_s_max
            and created - SKEW_S <= time_s <= expires + SKEW_S
            and isinstance(member.parameters.get("keyid"), str)
            and member.covers("@authority", "@target-uri")
            and ("signature-agent" not in headers or member.covers("signature-agent"))
        )

    def _find_key(self, host: str | None, key_id: str, time_s: float) -> tuple[Outcome, str | None, PublicKey | None]:
        """Return the outcome that a signature by the key has, the host of the key, and the key: that of the host's
        directory, else that of the table, or None."""
        if host is not None and self._directories and (keys := self._directories.keys(host)) is not None:
            key = keys.get(key_id)
            return "valid", host, key if key and key.is_in_use(time_s) else None
        known_host, known_key = self._known_keys.get(key_id, (host, None))
        if host is not None and known_host != host:
            return "known_key", host, None
        return "known_key", known_host, known_key


_FIELDS = ("signature", "signature-input", "signature-agent")
_SENT = "".join(map(chr, range(0x21, 0x7F)))
"""Characters of a URL that a request line can have. The others are encoded again: a server may send the URL of a
request in decoded form."""
_RANK = {outcome: rank for rank, outcome in enumerate(_ORDER)}


class _KeyResolver(HTTPSignatureKeyResolver):
    def __init__(self, key: PublicKey) -> None:
        self._key = key

    def resolve_public_key(self, key_id: str) -> Any:
        return self._key.key


class _Verifier(HTTPMessageVerifier):
    """Verifier of one signature at the time of its request. `_is_allowed` has compared the times."""

    def __init__(self, key: PublicKey, parameters: Mapping[str, Any]) -> None:
        super().__init__(signature_algorithm=key.algorithm, key_resolver=_KeyResolver(key))
        # A parameter that this release does not know is covered by the signature like the others.
        self.signature_metadata_parameters = set(parameters)  # type: ignore[misc]

    def validate_created_and_expires(self, sig_input: Any, max_age: Any = None) -> None:
        """Accept the times: the library would compare them with the present, not with the time of the request."""


def _is_signed_by(key: PublicKey, member: _Member, message: _Message) -> bool:
    try:
        _Verifier(key, member.parameters).verify(message, max_age=None, expect_tag=TAG, expect_label=member.label)
    except InvalidSignature:
        return False
    return True


def _members(inputs: str) -> list[_Member]:
    """Return the members of Signature-Input with the tag.

    Raises: ValueError if the header is not a dictionary, has a label twice, or a member is not a list.
    """
    members = []
    for label, (components, parameters) in _parse(inputs, "dictionary").items():
        if parameters.get("tag") != TAG:
            continue
        if not isinstance(components, list):
            raise ValueError(f"{label} is not a list of components")  # noqa: TRY004  # an error of the sender
        members.append(_Member(label, tuple(components), parameters))
    return members


def _parse(field: str, kind: Literal["dictionary", "item"]) -> Any:
    """Return the value of a structured field (RFC 9651): a dictionary, or a value and parameters. Raises ValueError."""
    return http_sf.parse(field.encode(), tltype=kind, on_duplicate_key=_refuse_duplicate)


def _refuse_duplicate(key: str, context: str) -> None:
    if context == "dictionary":
        raise ValueError(f"{key} is repeated")


def _agent_host(member: _Member, field: str | None) -> str | None:
    """Return the host in Signature-Agent, which is a string, or a dictionary of which the signature covers one entry.

    Return None if the text is not the URL of a host.
    """
    if field is None:
        return None
    try:
        if field.lstrip().startswith('"'):
            value, parameters = _parse(field, "item")
        else:
            entries = _parse(field, "dictionary")
            keys: list[Any] = [each.get("key") for name, each in member.components if name == "signature-agent"]
            value, parameters = entries[keys[0] or (next(iter(entries)) if len(entries) == 1 else member.label)]
        url = urlsplit(value) if isinstance(value, str) and parameters.get("type", "directory") == "directory" else None
    except (ValueError, KeyError, TypeError):
        return None
    if url is None or url.scheme != "https" or url.path not in ("", "/") or url.query or url.fragment or url.username:
        return None
    return url.netloc.lower() or None


@cache
def bundled_keys() -> Mapping[str, tuple[str, PublicKey]]:
    """Return the keys of the table by thumbprint, with their hosts."""
    return {
        thumbprint: (row.host, key)
        for row in signature_agents().values()
        for thumbprint, key in usable_keys(msgspec.convert(row.keys, list[JsonWebKey])).items()
    }
