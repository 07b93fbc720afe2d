"""The network that most views of a project, day and source have, as behind a proxy that is not trusted.

It is in memory only, and each process has its own. Boyer and Moore's majority vote needs no table of networks: if one
network has most of the views, it is the candidate.
"""

VIEWS_MIN, USER_AGENTS_MIN = 100, 5
"""Minimum numbers of views, and of user agents of the network: a crawler has one user agent."""
SAMPLED = 256
"""Maximum number of views of a post or chunk that are counted: its first ones."""


class Majority:
    """Vote of the views of a project, day and source."""

    __slots__ = ("_all", "_lead", "_network", "_user_agents", "_views")

    def __init__(self) -> None:
        self._network, self._lead, self._views, self._all = b"", 0, 0, 0
        self._user_agents = set[bytes]()

    def add(self, blocks: bytes) -> bool:
        """Count views, and return whether most views so far have one network. See `visitor.Salt.visitors` for blocks.

        Views of the candidate are counted since it became the candidate: the answer may be too late, never wrong.
        """
        for at in range(0, min(len(blocks), SAMPLED * 16), 16):
            network = blocks[at : at + 8]
            self._all += 1
            if network != self._network and self._lead:
                self._lead -= 1
                continue
            if network != self._network:
                self._network, self._views, self._user_agents = network, 0, set()
            self._lead += 1
            self._views += 1
            if len(self._user_agents) < USER_AGENTS_MIN:
                self._user_agents.add(blocks[at + 8 : at + 16])
        return self._all >= VIEWS_MIN and len(self._user_agents) >= USER_AGENTS_MIN and 2 * self._views > self._all
