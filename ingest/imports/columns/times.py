"""Times of a column, in any of the forms that the reference, `ingest.formats.fields.time_us`, reads."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingest.errors import InvalidLine
from ingest.formats.fields import time_us
from ingest.formats.json_products import Time

_INT_UNITS = ((0, 10**11, 10**6, 1), (10**11, 10**14, 10**3, 1), (10**14, 10**17, 1, 1), (10**17, 2**63, 1, 1_000))
"""Units of whole numbers: the numbers in the unit, and the factor and the divisor that convert them to microseconds."""
_FLOAT_UNITS = ((0, 9 * 10**9, 10**6), (10**11, 9 * 10**12, 10**3))
"""Units of floats, and of whole numbers among floats: those whose microseconds are below 2**53, which a float can
represent exactly."""
_DAY = (  # without the 29th of February, which is left to `time_us`
    "(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
)
_ISO = rf"^(?:19[7-9][0-9]|20[0-9]{{2}})-{_DAY}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z$"


def microseconds(times: Sequence[Time]) -> pa.Array:
    """Return microseconds since 1970, null for a time that `time_us` refuses."""
    kinds = frozenset(map(type, times))
    fast = _FAST[kinds](times) if kinds in _FAST else None
    return pa.array([_us(time) for time in times], pa.int64()) if fast is None else fast


def _of_ints(times: Sequence[int]) -> pa.Array | None:
    least, most = min(times), max(times)
    for first, end, factor, divisor in _INT_UNITS:
        if first <= least and most < end:
            return pa.array(np.array(times, np.int64) * factor // divisor)
    return None


def _of_floats(times: Sequence[float]) -> pa.Array | None:
    least, most = min(times), max(times)
    for first, end, factor in _FLOAT_UNITS:
        if first <= least and most < end:
            return pa.array(np.rint(np.array(times, np.float64) * factor).astype(np.int64))
    return None


def _of_texts(written: Sequence[str]) -> pa.Array | None:
    try:
        times = pa.array(written, pa.string()).dictionary_encode()
    except UnicodeEncodeError:  # a lone surrogate
        return None
    texts = times.dictionary
    is_plain = pc.match_substring_regex(texts, _ISO)
    plain = pc.if_else(is_plain, texts, None).cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    others = [_us(text) for text in texts.filter(pc.invert(is_plain)).to_pylist()]
    us = pc.replace_with_mask(plain, pc.invert(is_plain), pa.array(others, pa.int64()))
    return us.take(times.indices)


_FAST: Mapping[frozenset[type], Callable[[Sequence[Any]], pa.Array | None]] = {
    frozenset({int}): _of_ints,
    frozenset({float}): _of_floats,
    frozenset({int, float}): _of_floats,
    frozenset({str}): _of_texts,
}
"""Functions that convert times of these types; they return None if one of the times is unusual."""


def _us(time: Time) -> int | None:
    try:
        return time_us(time)
    except InvalidLine:
        return None
