"""Verification of the agents that the user agents of a log claim to be, once per user agent and address."""

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import ip_address
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingest.classification.user_agent_cache import Columns
from ingest.hits.classes import agent_of, as_spoofed
from ingest.verification.addresses import number_of
from ingest.verification.verdict import Verdict
from ingest.verification.verifier import Claim, Verifier

_Indices = npt.NDArray[np.int64]
_Verdict = Verdict | tuple[None, None]
_NO_VERDICT: _Verdict = (None, None)
_NO_VIEWS: _Indices = np.zeros(0, np.int64)
_BOUNDS = (attrgetter("start"), attrgetter("stop"))


class _Logged(NamedTuple):
    """Evidence of a line of a log."""

    address: str | None
    headers: None = None
    url: None = None
    method: str = "GET"


class _Case(NamedTuple):
    """Page views that have one verdict. `claimed` is the index of their class, `at_us` the time of one of them."""

    claimed: int
    agent: str
    user_agent: str
    address: str | None
    at_us: int


class Checked(NamedTuple):
    """Classes of user agents, the index of the class of each page view, and the verdict on each page view.

    Spoofed page views have classes of their own. `verdict` has the index of a page view's verdict in `verdicts`.
    """

    classes: list[Columns]
    indices: pa.Array
    verdicts: list[_Verdict]
    verdict: pa.Array


@lru_cache(65_536)
def public_address(address: str | None) -> str | None:
    """Return the address if a client on the Internet can have it; None for any other address, which is no evidence.

    A log behind a proxy may have the private address of the proxy in each line. A sample log may have addresses that
    are reserved for documentation.
    """
    if not address or number_of(address) is None:  # takes a tenth of the time of `is_global`
        return None
    try:
        return address if ip_address(address).is_global else None
    except ValueError:
        return None


def check(
    user_agent: pa.DictionaryArray,
    classes: Sequence[Columns],
    address: pa.DictionaryArray,
    ts_us: pa.Array,
    verifier: Verifier,
) -> Checked:
    """Return the verdicts on page views. `classes` are the classes of the texts in the dictionary of `user_agent`.

    Only the page views of AI agents and named bots are verified.
    """
    indices = user_agent.indices.to_numpy().astype(np.int32)
    views, cases, case = _cases(user_agent, classes, address, ts_us.to_numpy(), verifier)
    numbers: dict[_Verdict, int] = {_NO_VERDICT: 0}
    all_classes, spoofed = [*classes], dict[int, int]()
    verdict_of, class_of = np.zeros(len(cases), np.int32), np.zeros(len(cases), np.int32)
    verifier.prepare(Claim(*each[1:]) for each in cases)
    for place, (claimed, agent, text, sent_from, at_us) in enumerate(cases):
        result = verifier.verify(agent, text, _Logged(sent_from), at_us)
        verdict_of[place], class_of[place] = numbers.setdefault(result, len(numbers)), claimed
        if result.state == "spoofed":
            if claimed not in spoofed:
                spoofed[claimed] = len(all_classes)
                all_classes.append(as_spoofed(classes[claimed]))
            class_of[place] = spoofed[claimed]
    verdict, checked = np.zeros(len(indices), np.int32), indices.copy()
    verdict[views], checked[views] = verdict_of[case], class_of[case]
    return Checked(all_classes, pa.array(checked), [*numbers], pa.array(verdict))


def _cases(
    user_agent: pa.DictionaryArray,
    classes: Sequence[Columns],
    address: pa.DictionaryArray,
    times: _Indices,
    verifier: Verifier,
) -> tuple[_Indices, list[_Case], _Indices]:
    """Return the indices of the page views of agents, the different cases, and the index of each page view's case.

    Page views of one user agent are one case if they are from one address, and either all within the times for which
    the address lists are evidence, or all outside of these times. If all addresses give one verdict, the address is
    ignored.
    """
    agents, texts = [agent_of(each) for each in classes], user_agent.dictionary.to_pylist()
    evidence = {agent: verifier.evidence_us(agent) for agent in set(agents) if agent is not None}
    spans = [None if agent is None else evidence[agent] for agent in agents]
    claimed = user_agent.indices.to_numpy().astype(np.int64)
    views = np.flatnonzero(np.array([agent is not None for agent in agents], bool)[claimed]) if agents else _NO_VIEWS
    claimed, at_us = claimed[views], times[views]
    sent_from, sender = _senders(address, views, np.array([span is not None for span in spans], bool)[claimed])
    begins, ends = (np.array([bound(span) if span else 0 for span in spans], np.int64) for bound in _BOUNDS)
    is_evidence = (at_us >= begins[claimed]) & (at_us < ends[claimed])
    keys = (claimed * len(sent_from) + sender) * 2 + is_evidence
    encoded = pa.array(keys).dictionary_encode()
    case = encoded.indices.to_numpy()
    first = np.zeros(len(encoded.dictionary), np.int64)
    first[case[::-1]] = np.arange(len(case) - 1, -1, -1)  # of equal indices, NumPy assigns the last one
    cases = [
        _Case(number, str(agents[number]), texts[number], sent_from[place], us)
        for number, place, us in zip(
            claimed[first].tolist(), sender[first].tolist(), at_us[first].tolist(), strict=True
        )
    ]
    return views, cases, case


def _senders(
    address: pa.DictionaryArray, views: _Indices, is_looked_at: npt.NDArray[np.bool_]
) -> tuple[list[str | None], _Indices]:
    """Return the distinct public addresses of page views, and the index of each page view's address among them.

    The first address is None. A page view without a public address, or for which `is_looked_at` is false, has this
    index.
    """
    texts = [*address.dictionary.to_pylist(), None]
    logged = address.indices.fill_null(len(texts) - 1).to_numpy().astype(np.int64)[views]
    is_sender = np.zeros(len(texts), bool)
    is_sender[logged[is_looked_at]] = True
    senders = np.flatnonzero(is_sender)
    addresses = [public_address(texts[number]) for number in senders.tolist()]
    places = {each: place for place, each in enumerate(dict.fromkeys([None, *addresses]))}
    of_text = np.zeros(len(texts), np.int64)
    of_text[senders] = [places[each] for each in addresses]
    return [*places], np.where(is_looked_at, of_text[logged], 0)
