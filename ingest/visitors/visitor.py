"""Visitors: numbers of 64 bits for a network and a user agent, which only the salt of their day connects.

A visitor is the first half of one block of AES-256, with the salt as the key, over the network (8 bytes) and a digest
of the user agent (8 bytes): a pseudorandom function, as a keyed hash is. A log with random addresses has a new pair on
nearly each line: AES takes 0.02 µs for a line of a chunk, and keyed BLAKE2b, one call each, 0.6 to 0.9 µs.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from threading import Lock

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingest.verification.addresses import PACKED_MAPPED, packed, packed_all

DAY_US = 86_400_000_000
NO_NETWORK = bytes(8)
"""Network of a text that is no address. No client on the internet has an address in ::/64."""
_MAPPED = int.from_bytes(PACKED_MAPPED[8:], "little")


class SaltUnread(Exception):
    """The salt of a `day`, in days since 1970, is not in the memory of the process."""

    def __init__(self, day: int) -> None:
        super().__init__(day)
        self.day = day


class Salt:
    """The salt of a project and UTC day. `on_views` gets the source and the blocks of views."""

    __slots__ = ("_encryptor", "_lock", "_on_views")

    def __init__(self, salt: bytes, on_views: Callable[[str, bytes], None] = lambda source, blocks: None) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher  # noqa: PLC0415  # it takes 30 ms to import
        from cryptography.hazmat.primitives.ciphers.algorithms import AES  # noqa: PLC0415  # the same
        from cryptography.hazmat.primitives.ciphers.modes import ECB  # noqa: PLC0415  # the same

        cipher = Cipher(AES(salt), ECB())  # noqa: S305  # each block is a message of its own
        self._encryptor, self._lock, self._on_views = cipher.encryptor(), Lock(), on_views

    def of_blocks(self, blocks: Sequence[bytes], source: str) -> list[int]:
        """Return the visitor of each block, as `visitors` does. One block needs no array, which takes 3 µs."""
        if len(blocks) > 1:
            ids: list[int] = self.visitors(b"".join(blocks), source).tolist()
            return ids
        self._on_views(source, blocks[0])
        with self._lock:
            return [int.from_bytes(self._encryptor.update(blocks[0])[:8], "little", signed=True)]

    def visitors(self, blocks: bytes, source: str) -> npt.NDArray[np.int64]:
        """Return the visitors of blocks, each a network and the digest of a user agent."""
        self._on_views(source, blocks)
        with self._lock:  # a new encryptor takes 2 µs
            encrypted = self._encryptor.update(blocks)
        return np.frombuffer(encrypted, np.int64)[::2]


SaltsOf = Callable[[str, Collection[int]], Mapping[int, Salt]]
"""Function that returns the salts of a project by UTC day (days since 1970); none if visitors are not counted."""


def network(address: str | None) -> bytes:
    """Return the network of an address, 8 bytes: an IPv4 address, or the first half of an IPv6 address.

    An IPv4 address is preceded by 00 00 ff ff, as in its IPv4-mapped IPv6 address.
    """
    number = packed(address)
    return number[8:] if number.startswith(PACKED_MAPPED) else number[:8]


@lru_cache(4_096)
def digest(user_agent: str) -> bytes:
    """Return the digest of a user agent, 8 bytes."""
    return hashlib.blake2b(user_agent.encode(errors="surrogatepass"), digest_size=8).digest()


def of_views(
    project: str, views: Iterable[tuple[str | None, str, int]], source: str, salts_of: SaltsOf
) -> list[int | None]:
    """Return the visitor of each view: its address, user agent and time in µs. None without an address, or a salt."""
    visitors: list[int | None] = []
    blocks: dict[int, dict[int, bytes]] = {}
    for place, (address, user_agent, ts_us) in enumerate(views):
        visitors.append(None)
        if address and (of := network(address)) != NO_NETWORK:
            blocks.setdefault(ts_us // DAY_US, {})[place] = of + digest(user_agent)
    for day, salt in salts_of(project, blocks).items():
        for place, id in zip(blocks[day], salt.of_blocks([*blocks[day].values()], source), strict=True):
            visitors[place] = id
    return visitors


def of_columns(
    project: str, address: pa.DictionaryArray, user_agent: pa.DictionaryArray, ts_us: pa.Array, salts_of: SaltsOf
) -> pa.Array:
    """Return the visitor of each row of a log as `of_views` does. Each distinct text is parsed once."""
    addresses = [*address.dictionary.to_pylist(), None]
    first, second = np.frombuffer(b"".join(packed_all(addresses)), "<u8").reshape(-1, 2).T
    networks = np.where((first == 0) & (second & 0xFFFF_FFFF == _MAPPED), second, first)
    digests = np.frombuffer(b"".join(map(digest, user_agent.dictionary.to_pylist())), np.uint64)
    networks = networks[address.indices.fill_null(len(addresses) - 1).to_numpy()]
    digests = digests[user_agent.indices.to_numpy()]
    days, known = ts_us.to_numpy() // DAY_US, np.flatnonzero(networks)
    known = known[np.argsort(days[known], kind="stable")]
    distinct, starts = np.unique(days[known], return_index=True)
    by_day = dict(zip(distinct.tolist(), np.split(known, starts[1:]), strict=False))  # no day: one part, without rows
    visitors, is_known = np.zeros(len(ts_us), np.int64), np.zeros(len(ts_us), bool)
    for day, salt in salts_of(project, by_day).items():
        rows = by_day[day]
        blocks = np.stack([networks[rows], digests[rows]], axis=1)
        visitors[rows], is_known[rows] = salt.visitors(blocks.tobytes(), "log"), True
    return pa.array(visitors, mask=~is_known)
