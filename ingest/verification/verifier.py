"""Verification of hits: whether an agent is the one that its user agent names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ingest.verification import address_lists
from ingest.verification.address_check import AddressCheck, Indices, LoggedRequests
from ingest.verification.address_lists import AddressList
from ingest.verification.addresses import number_of
from ingest.verification.signature_agents import KNOWN_KEY, SIGNATURE, signature_agents
from ingest.verification.verdict import CLAIMED, NOT_CHECKED, Verdict

if TYPE_CHECKING:  # these modules and their libraries take 0.1 s to import, and most hits need neither
    from ingest.verification.directories import KeyDirectories
    from ingest.verification.public_keys import PublicKey
    from ingest.verification.reverse_dns import ReverseDns
    from ingest.verification.signatures import SignatureCheck

PREPARE_S = 10.0
"""Maximum time for which `Verifier.by_addresses` waits for names, in seconds."""


class Evidence(Protocol):
    """Part of `ingest.hits.evidence.Evidence` that the verification reads. A protocol, because `hits` imports this
    room."""

    @property
    def address(self) -> str | None: ...
    @property
    def headers(self) -> Mapping[str, str] | None: ...
    @property
    def url(self) -> str | None: ...
    @property
    def method(self) -> str: ...


class Verifier:
    """Verification of hits by their evidence. Safe for use by several threads.

    `folder` has the owner's address lists; of two copies of a list the newer one is used. The constructor reads the
    owner's lists, so that a damaged file is an error at the start and not at the first hit. The lists of the release
    are read at the first hit. If `lists` is given, only these are used. Without `reverse_dns` and `directories` nothing
    uses the network. `known_keys`: see `SignatureCheck`.

    Raises: InvalidAddressList
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        lists: Iterable[AddressList] | None = None,
        reverse_dns: ReverseDns | None = None,
        directories: KeyDirectories | None = None,
        known_keys: Mapping[str, tuple[str, PublicKey]] | None = None,
    ) -> None:
        self._of_owner = address_lists.read_owners(folder) if folder else {}
        self._only = None if lists is None else tuple(lists)
        self._reverse_dns = reverse_dns
        self._directories = directories
        self._known_keys = known_keys

    def lists(self) -> Iterable[AddressList]:
        if self._only is not None:
            return self._only
        return address_lists.newest(address_lists.shipped(), self._of_owner).values()

    def by_address(self, agent: str, user_agent: str, address: str | None, ts_us: int) -> Verdict:
        """Return the verdict of the address lists on a request. `agent` is the value of the column `agent`, `ts_us` the
        time of the request in microseconds since 1970."""
        return self._address_check.check(agent, user_agent, address, ts_us)

    def by_addresses(self, requests: LoggedRequests) -> tuple[Sequence[Verdict], Indices]:
        """Return verdicts, and the place among them of the verdict on each request of a log, as `verify` does.

        The names in reverse DNS are looked up several at a time. Names that are not resolved within PREPARE_S are no
        evidence.
        """
        verdicts, places = self._address_check.verdicts, self._address_check.check_all(requests)
        if self._reverse_dns is None:
            return verdicts, places
        return self._by_names(self._reverse_dns, requests, verdicts, places)

    def verify(self, agent: str | None, user_agent: str, evidence: Evidence, ts_us: int) -> Verdict:
        """Return the verdict on a request: the first of these states for which there is evidence.

        1. `verified`: a valid signature, an address in a list, a confirmed name in reverse DNS
        2. `signed_known_key`
        3. `spoofed`
        4. `invalid_signature`
        5. `not_checked`, `claimed`

        Evidence for the claim takes precedence over evidence against it, because a proxy of the site can make a
        signature invalid, and a new address of the operator can be missing in a list. `agent` is None for a request
        whose user agent names no agent: then only the signature is checked.
        """
        signed = self._by_signature(agent, evidence, ts_us)
        if signed is not None and signed.state == "verified":
            return signed
        listed = CLAIMED if agent is None else self.by_address(agent, user_agent, evidence.address, ts_us)
        if listed.state == "verified":
            return listed
        named = self._by_name(agent, evidence.address, listed)
        if named.state == "verified":
            return named
        if signed is not None and not (signed.state == "invalid_signature" and named.state == "spoofed"):
            return signed
        return named

    def close(self) -> None:
        """Cancel the lookups and fetches that have not begun."""
        for each in (self._reverse_dns, self._directories):
            if each is not None:
                each.close()

    def _by_signature(self, agent: str | None, evidence: Evidence, ts_us: int) -> Verdict | None:
        """Return the verdict of the request's signature; None without a signature that is evidence for the claim."""
        if evidence.headers is None or "signature-input" not in evidence.headers:
            return None
        signature = self._signature_check.check(evidence, ts_us)
        if signature is None or signature.outcome == "unverified":
            return None
        if signature.outcome == "invalid":
            return Verdict("invalid_signature", f"{SIGNATURE}{signature.host}" if signature.host else None)
        row = signature_agents().get(signature.host or "")
        if agent is not None and (row is None or agent not in row.agents):
            return None  # the host signs for other agents than the one that the user agent names
        if signature.outcome == "valid":
            return Verdict("verified", f"{SIGNATURE}{signature.host}")
        return Verdict("signed_known_key", f"{KNOWN_KEY}{signature.host}")

    def _by_name(self, agent: str | None, address: str | None, otherwise: Verdict) -> Verdict:
        """Return the verdict of reverse DNS; `otherwise` if there is no evidence.

        While the lookup of an address has not ended, no request is spoofed: its name may be one of the operator's.
        """
        if agent is None or self._reverse_dns is None or not self._reverse_dns.is_documented(agent):
            return otherwise
        if address is None or number_of(address) is None:
            return NOT_CHECKED
        pattern = self._reverse_dns.pattern(agent, address)
        if pattern is not None:
            return Verdict("verified", f"dns:{pattern}")
        is_open = otherwise.state == "spoofed" and not self._reverse_dns.is_looked_up(address)
        return CLAIMED if is_open else otherwise

    def _by_names(
        self, dns: ReverseDns, requests: LoggedRequests, listed: Sequence[Verdict], places: Indices
    ) -> tuple[Sequence[Verdict], Indices]:
        """Return the verdicts of `by_addresses`. `listed` are the verdicts of the address lists."""
        is_documented = [agent is not None and dns.is_documented(agent) for agent in requests.agents]
        named = np.flatnonzero(np.array(is_documented, bool)[requests.user_agent])
        shape = len(requests.agents), len(requests.addresses), len(listed)
        keys = np.ravel_multi_index((requests.user_agent[named], requests.address[named], places[named]), shape)
        distinct, case = np.unique(keys, return_inverse=True)
        cases = [
            (requests.agents[agent], requests.addresses[address], listed[place])
            for agent, address, place in zip(*np.unravel_index(distinct, shape), strict=True)
        ]
        unlisted = (address for _, address, verdict in cases if address and verdict.state != "verified")
        dns.look_up_all(dict.fromkeys(unlisted), PREPARE_S)
        answers = [case[2] if case[2].state == "verified" else self._by_name(*case) for case in cases]
        places[named] = len(listed) + case
        return [*listed, *answers], places

    # Two threads may build either of these at the same time; each result is complete, and the last one stays.

    @cached_property
    def _address_check(self) -> AddressCheck:
        return AddressCheck(self.lists())

    @cached_property
    def _signature_check(self) -> SignatureCheck:
        from ingest.verification.signatures import SignatureCheck  # noqa: PLC0415  # takes 0.1 s to import

        return SignatureCheck(self._directories, self._known_keys)


def create(folder: Path, *, is_reverse_dns: bool = False, key_directories: Collection[str] = ()) -> Verifier:
    """Return a verifier that uses the network only as far as the operator allows it.

    `folder`: see `Verifier`. `key_directories` are the hosts whose key directories may be fetched; the fetches begin
    immediately. `Verifier.verify` does not wait for the network: a name or a key that is not in the cache yet is no
    evidence. Only `Verifier.by_addresses` waits for names.

    Raises: InvalidAddressList
    """
    reverse_dns = directories = None
    if is_reverse_dns:
        from ingest.verification.reverse_dns import ReverseDns  # noqa: PLC0415  # off by default

        reverse_dns = ReverseDns(wait_s=0)
    if key_directories:
        from ingest.verification.directories import KeyDirectories  # noqa: PLC0415  # off by default

        directories = KeyDirectories(key_directories)
        directories.fetch_all()
    return Verifier(folder, reverse_dns=reverse_dns, directories=directories)
