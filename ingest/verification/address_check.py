"""Check of clients' addresses against the address lists of the agents that they claim to be."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ingest.errors import InvalidAddressList
from ingest.verification.address_lists import AddressList
from ingest.verification.addresses import PACKED_MAPPED, interval, is_truncated, packed, packed_all, special_intervals
from ingest.verification.verdict import CLAIMED, NOT_CHECKED, Verdict

Indices = npt.NDArray[np.int64]
_Packed = npt.NDArray[np.bytes_]
_Intervals = Sequence[tuple[int, int]]
"""Numbers of the first and the last address of intervals."""
_CLAIMED, _NOT_CHECKED, _UNLISTED = range(3)
"""First places in the verdicts. `_UNLISTED` is replaced by the verdict on an address in no list."""


class LoggedRequests(NamedTuple):
    """Unsigned requests of a log: the index of each one's user agent and address, and its time in µs since 1970.

    `agents` are the agents that the user agents claim to be; None for a user agent that names none.
    """

    agents: Sequence[str | None]
    user_agents: Sequence[str]
    addresses: Sequence[str | None]
    user_agent: Indices
    address: Indices
    at_us: Indices


class _Rule(NamedTuple):
    """Row of an agent in the table of verdicts, and the verdict on an address in no list of the agent.

    The verdict is `outside` for a request within the times `fresh_us` whose user agent has no word of `exempt`, and
    `claimed` for any other request.
    """

    row: int
    outside: int
    fresh_us: range
    exempt: tuple[str, ...]

    def is_exempt(self, user_agent: str) -> bool:
        return bool(self.exempt) and any(word in user_agent.lower() for word in self.exempt)


_NO_LISTS = _Rule(0, _CLAIMED, range(0), ())


class AddressCheck:
    """Check of addresses against the lists of each agent. The lists of a release are prepared in 20 ms.

    The edges of all prefixes cut the addresses into intervals. A table has the verdict of each interval (column) for
    each agent (row), so that one search finds an address in all lists. Verdicts are their places in `verdicts`.

    Raises: InvalidAddressList for a list with a text that is not a prefix.
    """

    def __init__(self, lists: Iterable[AddressList]) -> None:
        lists = tuple(lists)
        verified = [Verdict("verified", each.label) for each in lists]
        self.verdicts = [CLAIMED, NOT_CHECKED, CLAIMED, *verified]
        self.agents: dict[str, list[AddressList]] = {}
        """The lists of each agent, by the agent's name."""
        for each in lists:
            for token in each.tokens:
                self.agents.setdefault(token, []).append(each)
        self._rules = {agent: self._rule(row, agent) for row, agent in enumerate(self.agents, 1)}
        covered = [special_intervals(), *map(_intervals, lists)]
        self._starts = _starts(covered)
        self._start_texts: list[bytes] = self._starts.tolist()
        self._table = np.full((1 + len(self.agents), len(self._starts)), _UNLISTED, np.int16)
        for place in reversed(range(len(lists))):  # an address in several lists of an agent has the first one's verdict
            is_listed = self._is_in(covered[1 + place])
            for token in lists[place].tokens:
                self._table[self._rules[token].row, is_listed] = self.verdicts.index(verified[place])
        self._table[:, self._is_in(covered[0])] = _NOT_CHECKED
        self._table[_NO_LISTS.row] = _CLAIMED

    def check(self, agent: str, user_agent: str, address: str | None, ts_us: int) -> Verdict:
        """Return the verdict on a request of an agent from an address."""
        rule = self._rules.get(agent)
        if rule is None:
            return CLAIMED
        number = packed(address)
        place = int(self._table[rule.row, bisect_right(self._start_texts, number) - 1])
        if place == _UNLISTED:
            if is_truncated(number):
                return NOT_CHECKED
            place = rule.outside if ts_us in rule.fresh_us and not rule.is_exempt(user_agent) else _CLAIMED
        return self.verdicts[place]

    def check_all(self, requests: LoggedRequests) -> Indices:
        """Return the place in `verdicts` of the verdict on each request, as `check` does."""
        rules = [self._rules.get(agent or "", _NO_LISTS) for agent in requests.agents]
        is_exempt = [rule.is_exempt(text) for rule, text in zip(rules, requests.user_agents, strict=True)]
        of_agents = [(each.row, each.outside, each.fresh_us.start, each.fresh_us.stop) for each in rules]
        row, outside, begin, end = np.array(of_agents, np.int64).reshape(-1, 4).T[:, requests.user_agent]
        numbers = np.array(packed_all(requests.addresses), self._starts.dtype)
        interval = np.searchsorted(self._starts, numbers, "right") - 1
        place = self._table[row, interval[requests.address]].astype(np.int64)
        is_fresh = (begin <= requests.at_us) & (requests.at_us < end)
        is_evidence = is_fresh & ~np.array(is_exempt, bool)[requests.user_agent]
        unlisted = np.where(is_evidence, outside, _CLAIMED)
        unlisted[_are_truncated(numbers)[requests.address]] = _NOT_CHECKED
        return np.where(place == _UNLISTED, unlisted, place)

    def _rule(self, row: int, agent: str) -> _Rule:
        """Join the lists of an agent: absence is evidence only if each list is complete and fresh."""
        lists = self.agents[agent]
        is_evidence = all(each.complete and agent not in each.never_spoofed for each in lists)
        outside = Verdict("spoofed", ", ".join(each.label for each in lists)) if is_evidence else CLAIMED
        if outside not in self.verdicts:
            self.verdicts.append(outside)
        times = [each.fresh_us for each in lists]
        return _Rule(
            row,
            self.verdicts.index(outside),
            range(max(each.start for each in times), min(each.stop for each in times)),
            tuple(word for each in lists for word in each.exempt),
        )

    def _is_in(self, covered: _Intervals) -> npt.NDArray[np.bool_]:
        """Return for each interval of the table whether it is in one of `covered`."""
        firsts, lasts = (_array(numbers) for numbers in zip(*covered, strict=True))
        changes = np.zeros(len(self._starts) + 1, np.int64)
        np.add.at(changes, np.searchsorted(self._starts, firsts), 1)
        np.add.at(changes, np.searchsorted(self._starts, lasts, "right"), -1)
        return np.cumsum(changes[:-1]) > 0


def _are_truncated(numbers: _Packed) -> npt.NDArray[np.bool_]:
    """Return what `is_truncated` returns for each packed address."""
    first, second = numbers.view(">u8").reshape(-1, 2).T
    is_ipv4 = (first == 0) & (second >> 32 == int.from_bytes(PACKED_MAPPED))
    return np.where(is_ipv4, second & 0xFF, second) == 0  # type: ignore[no-any-return]


def _intervals(ranges: AddressList) -> _Intervals:
    try:
        return [*map(interval, ranges.prefixes)]
    except ValueError as error:
        raise InvalidAddressList(f"the address list {ranges.id} has a text that is not a prefix: {error}") from None


def _starts(covered: Sequence[_Intervals]) -> _Packed:
    """Return the first address of each interval in which all addresses are in the same ones of `covered`."""
    edges = {edge for intervals in covered for first, last in intervals for edge in (first, last + 1)}
    return _array(sorted(edges - {1 << 128}))


def _array(numbers: Sequence[int]) -> _Packed:
    return np.array([number.to_bytes(16) for number in numbers], "S16")
