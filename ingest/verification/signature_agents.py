"""Table of the signing agents in `signature_agents.toml`: the hosts whose key directories are trusted."""

import tomllib
from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from ingest.verification.verdict import Verdict

SIGNATURE, KNOWN_KEY = "signature:", "key:"
"""Prefixes of the host in `verified_by`: for a key of the host's directory, and for a key of the table."""


class SignatureAgent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Host of the header Signature-Agent. The first of `agents` names a request whose user agent names no agent."""

    host: str
    agents: tuple[str, ...]
    source: str
    checked: date
    keys: tuple[dict[str, Any], ...] = ()
    """JSON Web Keys of the host's directory."""
    keys_seen: date | None = None


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    signature_agent: tuple[SignatureAgent, ...]


def parse(toml: str) -> Mapping[str, SignatureAgent]:
    """Return the rows of a TOML text by host. Raises msgspec.ValidationError."""
    return {row.host: row for row in msgspec.convert(tomllib.loads(toml), _Table).signature_agent}


@cache
def signature_agents() -> Mapping[str, SignatureAgent]:
    """Return the rows of the table by host."""
    return parse(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def signed_agent(verdict: Verdict) -> str | None:
    """Return the agent of the host whose key signed a request; None if the verdict does not rest on a signature.

    A signed request may have the user agent of a browser: that of ChatGPT's agent names Chrome.
    """
    method, _, host = (verdict.verified_by or "").partition(":")
    if verdict.state not in ("verified", "signed_known_key") or f"{method}:" not in (SIGNATURE, KNOWN_KEY):
        return None
    row = signature_agents().get(host)
    return row.agents[0] if row else None
