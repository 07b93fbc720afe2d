"""Attack on stored data: find an address by trying all addresses of a network, if all but the address is known."""

import hashlib
import hmac
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import xxhash

from ingest.hotlog.ledger_store import keyed

ADDRESSES = [f"9.9.9.{number}" for number in range(256)]
"""The network in which the addresses are searched."""
WIDTH = 8
"""Number of bytes of a digest that are compared: as many as the shortest stored digest has."""
HASHES: Sequence[Callable[[bytes], bytes]] = (
    *(lambda text, name=name: hashlib.new(name, text).digest() for name in ("md5", "sha1", "sha256", "sha512")),
    *(lambda text, size=size: hashlib.blake2b(text, digest_size=size).digest() for size in (8, 16, 20, 32, 64)),
    *(lambda text, size=size: hashlib.blake2s(text, digest_size=size).digest() for size in (8, 16, 32)),
    xxhash.xxh64_digest,
    xxhash.xxh3_64_digest,
    xxhash.xxh3_128_digest,
)


def stored(folder: Path, without: str | None = None) -> npt.NDArray[np.uint64]:
    """Return all sequences of WIDTH bytes in the files of a folder, without those whose name begins with `without`."""
    files = [path for path in folder.rglob("*") if path.is_file() and not (without and path.name.startswith(without))]
    content = b"".join(path.read_bytes() + bytes(WIDTH) for path in files)
    return np.unique(np.concatenate([_words(content[start:]) for start in range(WIDTH)]))


def guess(sequences: npt.NDArray[np.uint64], text: Callable[[str], bytes], secret: bytes = b"") -> list[str]:
    """Return the addresses for which a digest of their text is stored, as bytes or as hexadecimal digits.

    With the secret of the store, digests that are keyed with it are compared, too.
    """
    needles = np.array([[_word(each) for each in _derived(text(address), secret)] for address in ADDRESSES], np.uint64)
    return [ADDRESSES[index] for index in np.flatnonzero(np.isin(needles, sequences).any(axis=1))]


def guess_log(sequences: npt.NDArray[np.uint64], lines: Iterable[str], secret: bytes = b"") -> set[str]:
    """Return the addresses of a log that are found: of each line alone, and of each line behind those found before.

    `lines` are the lines with `{}` in place of their address.
    """
    found, before = set[str](), ""
    for line in lines:
        texts = (
            lambda address: (before + line.format(address)).encode(),  # noqa: B023  # called now
            lambda address: line.format(address).rstrip("\n").encode(),  # noqa: B023
        )
        hits = [each for text in texts for each in guess(sequences, text, secret)]
        found |= set(hits)
        before += line.format(hits[0] if hits else "")
    return found


def _derived(text: bytes, secret: bytes) -> Iterator[bytes]:
    for hash in HASHES:
        digest = hash(text)
        yield from (digest, digest[::-1], digest.hex().encode())
        for part in (digest, digest[:WIDTH]) if secret else ():
            yield keyed(part, secret)
            yield hashlib.blake2b(part, digest_size=len(part), key=secret).digest()
    if secret:
        yield hmac.digest(secret, text, "sha256")
        yield hashlib.blake2b(text, digest_size=16, key=secret).digest()


def _word(digest: bytes) -> np.uint64:
    return _words(digest.ljust(WIDTH, b"\0")[:WIDTH])[0]


def _words(content: bytes) -> npt.NDArray[np.uint64]:
    return np.frombuffer(content[: len(content) // WIDTH * WIDTH], np.uint64)
