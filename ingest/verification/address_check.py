"""Check of a client's address against the address lists of the agent that it claims to be."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ingest.errors import InvalidAddressList
from ingest.verification.address_lists import AddressList
from ingest.verification.addresses import RangeTable, is_truncated, number_of
from ingest.verification.verdict import CLAIMED, NOT_CHECKED, Verdict


class _AgentLists(NamedTuple):
    """Lists of one agent, as tables with their verdicts.

    The verdict on an address in no table is `outside` for a request within the times `fresh_us` whose user agent has no
    word of `exempt`, and `claimed` for any other request.
    """

    tables: tuple[tuple[RangeTable, Verdict], ...]
    outside: Verdict
    fresh_us: range
    exempt: tuple[str, ...]


class AddressCheck:
    """Check of addresses against the lists of each agent. The tables of an agent are built when the agent is first
    looked up, in 1 to 5 ms."""

    def __init__(self, lists: Iterable[AddressList]) -> None:
        self._lists: dict[str, list[AddressList]] = {}
        for each in lists:
            for token in each.tokens:
                self._lists.setdefault(token, []).append(each)
        self._tables: dict[str, _AgentLists] = {}

    @property
    def agents(self) -> Mapping[str, Sequence[AddressList]]:
        """Return the lists of each agent, by the agent's name."""
        return self._lists

    def check(self, agent: str, user_agent: str, address: str | None, ts_us: int) -> Verdict:
        """Return the verdict on a request of an agent from an address.

        Raises: InvalidAddressList for a list with a text that is not a prefix.
        """
        tables = self._tables_of(agent)
        if tables is None:
            return CLAIMED
        number = number_of(address) if address else None
        if number is None:
            return NOT_CHECKED
        return _decide(tables, number, user_agent, ts_us)

    def fresh_us(self, agent: str) -> range | None:
        """Return the times of requests, in microseconds since 1970, for which absence from the lists is evidence; None
        for an agent without a list.

        Raises: InvalidAddressList
        """
        tables = self._tables_of(agent)
        return None if tables is None else tables.fresh_us

    def _tables_of(self, agent: str) -> _AgentLists | None:
        tables = self._tables.get(agent)
        if tables is None and (lists := self._lists.get(agent)) is not None:
            tables = self._tables[agent] = _joined(agent, lists)
        return tables


def _decide(tables: _AgentLists, number: int, user_agent: str, ts_us: int) -> Verdict:
    for table, verdict in tables.tables:
        if number in table:
            return verdict
    if is_truncated(number):
        return NOT_CHECKED
    if ts_us not in tables.fresh_us or (tables.exempt and any(word in user_agent.lower() for word in tables.exempt)):
        return CLAIMED
    return tables.outside


def _joined(agent: str, lists: Sequence[AddressList]) -> _AgentLists:
    """Join the lists of an agent: absence is evidence only if each list is complete and fresh."""
    try:
        tables = tuple((RangeTable(each.prefixes), Verdict("verified", each.label)) for each in lists)
    except ValueError as error:
        raise InvalidAddressList(f"an address list of {agent} has a text that is not a prefix: {error}") from None
    is_evidence = all(each.complete and agent not in each.never_spoofed for each in lists)
    times = [each.fresh_us for each in lists]
    return _AgentLists(
        tables,
        Verdict("spoofed", ", ".join(each.label for each in lists)) if is_evidence else CLAIMED,
        range(max(each.start for each in times), min(each.stop for each in times)),
        tuple(word for each in lists for word in each.exempt),
    )
