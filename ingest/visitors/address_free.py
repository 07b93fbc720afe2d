"""Texts without the addresses in them, so that a stored digest of a text leads to no address.

`hits` has all else of a log line: with the key of a digest, an attacker could try all addresses until it matches.
"""

from functools import reduce
from operator import or_
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.uint8]


class _Form(NamedTuple):
    """Form of an address: `chained` separators, each at one of `gaps` after the one before, of at least `separators`.

    `reach` are the most characters before the first one of the chain, and after it.
    """

    separator: str
    gaps: range
    chained: int
    separators: int
    reach: tuple[int, int]
    characters: npt.NDArray[np.bool_]


_DECIMAL, _HEXADECIMAL = (np.isin(np.arange(256), [*text]) for text in (b"0123456789.", b"0123456789abcdefABCDEF:."))
_FORMS = (
    _Form(".", range(2, 5), 3, 3, (3, 11), _DECIMAL),
    _Form(":", range(1, 2), 2, 2, (45, 45), _HEXADECIMAL),
    _Form(":", range(2, 6), 4, 7, (4, 40), _HEXADECIMAL),
)
"""IPv4; IPv6 with `::`; and IPv6 of eight groups. A time has fewer separators."""


def address_free(text: bytes) -> Codes:
    """Return the bytes of a text of one or more lines, with 0 in place of each byte of an IPv4 or IPv6 address.

    What only looks like an address, such as the version 120.0.0.0, is replaced, too. Times are not. Each line has the
    same result alone and among others.
    """
    codes = np.frombuffer(text, np.uint8)
    result = codes.copy()
    for form in _FORMS:
        farthest = form.gaps[-1]
        is_first = np.zeros(len(codes) + farthest * (form.chained - 1), np.bool_)
        np.equal(codes, ord(form.separator), out=is_first[: len(codes)])
        for _ in range(form.chained - 1):
            end = len(is_first) - farthest
            is_first = is_first[:end] & reduce(or_, (is_first[gap : gap + end] for gap in form.gaps))
        if len(first := np.flatnonzero(is_first)):
            result[_addresses(codes, first, form)] = 0
    return result


def _addresses(codes: Codes, first: npt.NDArray[np.intp], form: _Form) -> npt.NDArray[np.intp]:
    """Return the places of all characters of the addresses in which a chain begins at these places."""
    before, after = form.reach
    places = first + np.arange(-before, after + 1)[:, np.newaxis]
    near = codes.take(places, mode="clip")
    is_part = form.characters.take(near) & (places >= 0) & (places < len(codes))
    for row in [*range(before)[::-1], *range(before + 1, before + after + 1)]:
        is_part[row] &= is_part[row + (1 if row < before else -1)]
    is_part &= np.count_nonzero(is_part & (near == ord(form.separator)), axis=0) >= form.separators
    return places[is_part]
