"""Check of a client's address against the address lists of the agent that it claims to be."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ingest.errors import InvalidAddressList
from ingest.verification.address_lists import AddressList
from ingest.verification.addresses import RangeTable, is_truncated, number_of
from ingest.verification.verdict import CLAIMED, NOT_CHECKED, Verdict


class _Claim(NamedTuple):
    """Verdicts by the lists of one agent: of an address in a table, and of an address in no table.

    The latter is `outside` for a request within the times `fresh_us` whose user agent has no word of `exempt`, and
    `claimed` for any other request.
    """

    tables: tuple[tuple[RangeTable, Verdict], ...]
    outside: Verdict
    fresh_us: range
    exempt: tuple[str, ...]


class AddressCheck:
    """Address lists by agent. The table of an agent is built when the agent is first looked up, in 1 to 5 ms."""

    def __init__(self, lists: Iterable[AddressList]) -> None:
        self._lists: dict[str, list[AddressList]] = {}
        for each in lists:
            for token in each.tokens:
                self._lists.setdefault(token, []).append(each)
        self._claims: dict[str, _Claim] = {}

    @property
    def agents(self) -> Mapping[str, Sequence[AddressList]]:
        """Return the lists of each agent, by the agent's name."""
        return self._lists

    def check(self, agent: str, user_agent: str, address: str | None, ts_us: int) -> Verdict:
        """Return the verdict on a request of an agent from an address.

        Raises: InvalidAddressList for a list with a text that is not a prefix.
        """
        claim = self._claims.get(agent) or self._claim(agent)
        if claim is None:
            return CLAIMED
        number = number_of(address) if address else None
        if number is None:
            return NOT_CHECKED
        return _decide(claim, number, user_agent, ts_us)

    def fresh_us(self, agent: str) -> range | None:
        """Return the times of requests, in microseconds since 1970, for which absence from the lists is evidence; None
        for an agent without a list.

        Raises: InvalidAddressList
        """
        claim = self._claims.get(agent) or self._claim(agent)
        return None if claim is None else claim.fresh_us

    def _claim(self, agent: str) -> _Claim | None:
        lists = self._lists.get(agent)
        if lists is None:
            return None
        claim = self._claims[agent] = _claim_of(agent, lists)
        return claim


def _decide(claim: _Claim, number: int, user_agent: str, ts_us: int) -> Verdict:
    for table, verdict in claim.tables:
        if number in table:
            return verdict
    if is_truncated(number):
        return NOT_CHECKED
    if ts_us not in claim.fresh_us or (claim.exempt and any(word in user_agent.lower() for word in claim.exempt)):
        return CLAIMED
    return claim.outside


def _claim_of(agent: str, lists: Sequence[AddressList]) -> _Claim:
    """Join the lists of an agent: absence is evidence only if each list is complete and fresh."""
    try:
        tables = tuple((RangeTable(each.prefixes), Verdict("verified", each.label)) for each in lists)
    except ValueError as error:
        raise InvalidAddressList(f"an address list of {agent} has a text that is not a prefix: {error}") from None
    is_evidence = all(each.complete and agent not in each.never_spoofed for each in lists)
    times = [each.fresh_us for each in lists]
    return _Claim(
        tables,
        Verdict("spoofed", ", ".join(each.label for each in lists)) if is_evidence else CLAIMED,
        range(max(each.start for each in times), min(each.stop for each in times)),
        tuple(word for each in lists for word in each.exempt),
    )
