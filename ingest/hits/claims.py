"""Verification of the agents that the user agents of a log claim to be."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ingest.classification.user_agent_cache import Columns
from ingest.hits.classes import agent_of, as_spoofed
from ingest.verification.address_check import LoggedRequests
from ingest.verification.verdict import Verdict
from ingest.verification.verifier import Verifier


class Checked(NamedTuple):
    """Classes of user agents, the index of the class of each page view, and the verdict on each page view.

    Spoofed page views have classes of their own. `verdict` has the index of a page view's verdict in `verdicts`.
    """

    classes: list[Columns]
    indices: pa.Array
    verdicts: list[Verdict | tuple[None, None]]
    verdict: pa.Array


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
    agents = [agent_of(each) for each in classes]
    addresses = [*address.dictionary.to_pylist(), None]
    indices = user_agent.indices.to_numpy().astype(np.int64)
    views = np.flatnonzero(np.array([agent is not None for agent in agents], bool)[indices])
    claimed, sent_from = indices[views], address.indices.fill_null(len(addresses) - 1).to_numpy()[views]
    texts = user_agent.dictionary.to_pylist()
    requests = LoggedRequests(agents, texts, addresses, claimed, sent_from, ts_us.to_numpy()[views])
    verdicts, places = verifier.by_addresses(requests)
    is_spoofed = np.array([verdict.state == "spoofed" for verdict in verdicts], bool)[places]
    spoofed, new_class = np.unique(claimed[is_spoofed], return_inverse=True)
    indices[views[is_spoofed]] = len(classes) + new_class
    used = np.flatnonzero(np.bincount(places, minlength=len(verdicts)))
    verdict = np.zeros(len(indices), np.int32)
    verdict[views] = 1 + np.searchsorted(used, places)
    return Checked(
        [*classes, *(as_spoofed(classes[each]) for each in spoofed.tolist())],
        pa.array(indices),
        [(None, None), *(verdicts[each] for each in used.tolist())],
        pa.array(verdict),
    )
