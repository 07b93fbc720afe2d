"""Verification of hits: whether an agent is the one that its user agent names."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from ingest.verification import address_lists
from ingest.verification.address_check import AddressCheck
from ingest.verification.address_lists import AddressList
from ingest.verification.verdict import Verdict


class Verifier:
    """Verification of hits by their evidence. Safe for use by several threads.

    `folder` has the owner's newer address lists, which take precedence over those of the release. They are read at
    once, so that a damaged file is an error at the start and not at the first hit; the lists of the release are read at
    the first hit. Without `folder`, or with `lists`, only the lists of the release, or those, are used.

    Raises: InvalidAddressList
    """

    def __init__(self, folder: Path | None = None, *, lists: Iterable[AddressList] | None = None) -> None:
        self._newer = address_lists.read_folder(folder) if folder else {}
        self._check = None if lists is None else AddressCheck(lists)

    def by_address(self, agent: str, user_agent: str, address: str | None, ts_us: int) -> Verdict:
        """Return the verdict of the address lists on a request. `agent` is the value of the column `agent`, `ts_us` the
        time of the request in microseconds since 1970."""
        return self._address_check.check(agent, user_agent, address, ts_us)

    def by_addresses(
        self, agent: str, user_agent: str, addresses: Sequence[str | None], ts_us: Sequence[int]
    ) -> list[Verdict]:
        """Return the verdict of the address lists on each request of one agent with one user agent."""
        return self._address_check.check_all(agent, user_agent, addresses, ts_us)

    def is_verifiable(self, agent: str) -> bool:
        """Return whether there is an address list for an agent."""
        return agent in self._address_check.agents

    @property
    def _address_check(self) -> AddressCheck:
        if self._check is None:  # two threads may build it at the same time; either one is complete
            self._check = AddressCheck({**address_lists.shipped(), **self._newer}.values())
        return self._check
