"""Claims: agents that user agents name, and the verification of those of a log, once per user agent and address."""

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from ipaddress import ip_address
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingest.classification.user_agent_cache import Columns
from ingest.hits.classes import agent_of, as_spoofed
from ingest.verification.verdict import Verdict
from ingest.verification.verifier import Claim, Verifier

DAY_US = 86_400_000_000
"""Length of a day, in microseconds. An address list is fresh for longer: all requests within a day that begins and ends
with one verdict have this verdict."""
_Indices = npt.NDArray[np.int64]
_Verdict = Verdict | tuple[None, None]
_NO_VERDICT: _Verdict = (None, None)


class _Logged(NamedTuple):
    """Evidence of a line of a log."""

    address: str | None
    headers: None = None
    url: None = None
    method: str = "GET"


class Checked(NamedTuple):
    """Classes of user agents, the index of the class of each page view, and the verdict on each page view.

    Spoofed page views have classes of their own. `verdict` has the index of a page view's verdict in `verdicts`.
    """

    classes: list[Columns]
    indices: pa.Array
    verdicts: list[_Verdict]
    verdict: pa.Array


@lru_cache(65_536)
def public(address: str | None) -> str | None:
    """Return an address that a client on the Internet can have; None for another one, which is no evidence.

    A log behind a proxy may have the private address of the proxy in each line, and a sample log addresses that are
    reserved for documentation.
    """
    try:
        return address if address and ip_address(address).is_global else None
    except ValueError:
        return None


def check(
    user_agent: pa.DictionaryArray,
    classes: Sequence[Columns],
    address: pa.DictionaryArray,
    ts_us: pa.Array,
    verifier: Verifier,
) -> Checked:
    """Return the verdicts on page views. `classes` are those of the texts of `user_agent`'s dictionary.

    Only the page views of AI agents and named bots are looked up.
    """
    indices = user_agent.indices.to_numpy().astype(np.int32)
    numbers: dict[_Verdict, int] = {_NO_VERDICT: 0}
    verdict, all_classes, spoofed = np.zeros(len(indices), np.int32), [*classes], dict[int, int]()
    checked = indices.copy()
    for views, result in _verdicts(user_agent, classes, address, ts_us.to_numpy(), verifier):
        verdict[views] = numbers.setdefault(result, len(numbers))
        if result.state == "spoofed":
            claimed = int(indices[views[0]])
            if claimed not in spoofed:
                spoofed[claimed] = len(all_classes)
                all_classes.append(as_spoofed(classes[claimed]))
            checked[views] = spoofed[claimed]
    return Checked(all_classes, pa.array(checked), [*numbers], pa.array(verdict))


def _verdicts(
    user_agent: pa.DictionaryArray,
    classes: Sequence[Columns],
    address: pa.DictionaryArray,
    times: _Indices,
    verifier: Verifier,
) -> Iterator[tuple[_Indices, Verdict]]:
    """Yield page views of one user agent and address, as indices, and their verdict."""
    agents, texts = [agent_of(each) for each in classes], user_agent.dictionary.to_pylist()
    addresses = [*map(public, address.dictionary.to_pylist()), None]
    sender = address.indices.fill_null(len(addresses) - 1).to_numpy().astype(np.int64)
    claimed = user_agent.indices.to_numpy().astype(np.int64)
    is_claim = np.array([agent is not None for agent in agents], bool)
    views = np.flatnonzero(is_claim[claimed]) if agents else np.zeros(0, np.int64)
    groups = list(_groups(claimed[views] * len(addresses) + sender[views], views, times))

    def claim(view: int) -> Claim:
        agent = agents[claimed[view]]
        assert agent is not None
        return Claim(agent, texts[claimed[view]], addresses[sender[view]], int(times[view]))

    verifier.prepare(claim(same[0]) for same in groups)
    for same in groups:
        agent, text, sent_from, _ = claim(same[0])
        decide = partial(_decide, verifier, agent, text, sent_from)
        begin, end = decide(int(times[same[0]])), decide(int(times[same[-1]]))
        if begin == end:
            yield same, begin
        else:
            yield from ((same[number : number + 1], decide(int(times[view]))) for number, view in enumerate(same))


def _decide(verifier: Verifier, agent: str, user_agent: str, address: str | None, ts_us: int) -> Verdict:
    return verifier.verify(agent, user_agent, _Logged(address), ts_us)


def _groups(keys: _Indices, views: _Indices, times: _Indices) -> Iterator[_Indices]:
    """Yield the page views of each key on each UTC day, in the order of time."""
    days = times[views] // DAY_US
    order = np.lexsort((times[views], keys))
    is_new = (np.diff(keys[order]) != 0) | (np.diff(days[order]) != 0)
    if views.size:
        yield from np.split(views[order], np.flatnonzero(is_new) + 1)
