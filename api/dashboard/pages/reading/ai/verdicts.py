"""Verification of AI agents as pages show it: requests by state, the evidence, and requests in a false name."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from api.dashboard.web.view import View
from ingest.classification.agents import BY_NAME
from ingest.verification import address_lists
from ingest.verification.verdict import State

Agent = tuple[str | None, str | None, str | None]
"""Agent, operator and purpose of a hit."""
SPOOFED, NOT_CHECKED, KNOWN_KEY = "spoofed", "not_checked", "signed_known_key"
PROOFS = {"dns": "Reverse DNS", "signature": "Signature of", "key": "Known key of"}
"""Kinds of evidence other than address lists as pages show them, by the beginning of `hits.verified_by`."""
_COPY = re.compile(r"list:(?P<id>.+) (?P<day>\d{4}-\d\d-\d\d)")
_OF_READERS = ("operator", "purpose", "verification")
"""Filters that are not in the query: a spoofed hit has no operator and no purpose, and pages show all states."""
TEXTS: Mapping[State, str] = {
    "verified": "The agent is genuine: its address is in the list that its operator publishes, reverse DNS confirms "
    "its name, or its signature is valid.",
    "signed_known_key": "The request is signed with a key of the operator that this release knows.",
    "claimed": "No evidence for or against: the operator publishes no addresses, its list is older or newer than the "
    "request, or the agent also runs on the machines of its users.",
    "not_checked": "The address of the visitor is not known, or the request came before agents were verified.",
    "invalid_signature": "The request has a signature that is not valid.",
    "spoofed": "The operator publishes all addresses of the agent, and the request came from another one. It counts as "
    "another bot, not as AI.",
}
"""Explanations of the states for the owner of a site."""


@dataclass(frozen=True, slots=True)
class Proof:
    """A piece of evidence: its kind and name, and for an address list the day of the copy and the URL of the source."""

    kind: str
    name: str
    day: date | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Verification:
    """Requests in the names of AI agents by state, the evidence of the last 7 days, and false names.

    A state without a request has no row: where nothing was checked, nothing is known about the other states. `reads`
    are the reads of each agent by state, without the spoofed requests, which are no reads of the agent.
    """

    states: tuple[dict[str, Any], ...]
    evidence: tuple[dict[str, Any], ...]
    false_names: tuple[dict[str, Any], ...]
    reads: Mapping[Agent, Mapping[State, int]]

    @property
    def requests(self) -> int:
        return sum(row["requests"] for row in self.states)

    @property
    def spoofed(self) -> int:
        return sum(row["requests"] for row in self.states if row["state"] == SPOOFED)

    @property
    def is_unchecked(self) -> bool:
        """Return whether nothing is known about any request."""
        return {row["state"] for row in self.states} == {NOT_CHECKED}


def verification_of(view: View) -> Verification:
    """Return the verification of the AI agents that the filters of the view select, in all states."""
    verdicts = view.reports.verdicts(view.snapshot, view.query(traffic=None, **dict.fromkeys(_OF_READERS)))
    rows = _selected(view, verdicts.states.to_pylist())
    requests, reads, names = Counter[State](), defaultdict[Agent, Counter[State]](Counter), Counter[str | None]()
    for row in rows:
        requests[row["verification"]] += row["views"]
        names[row["agent"]] += row["views"]
        if row["traffic"] == "ai":
            reads[row["agent"], row["operator"], row["purpose"]][row["verification"]] += row["views"]
    return Verification(
        tuple(_state_row(view, state, requests) for state in TEXTS if requests[state]),
        _evidence(_selected(view, verdicts.evidence.to_pylist())),
        tuple(_false_name(view, row, names) for row in rows if row["verification"] == SPOOFED),
        reads,
    )


def _selected(view: View, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of AI agents. A spoofed row gets the operator and purpose of the agent whose name it has."""
    selected = []
    for row in rows:
        fact = BY_NAME.get(row["agent"]) if row["verification"] == SPOOFED else None
        if fact is not None:
            row |= {"operator": fact.operator, "purpose": fact.purpose}
        is_chosen = all(view.filters[name] in (None, row[name]) for name in ("operator", "purpose"))
        if is_chosen and (row["traffic"] == "ai" or fact):
            selected.append(row)
    return selected


def _state_row(view: View, state: State, requests: Counter[State]) -> dict[str, Any]:
    """Return a state with its share of all requests, and the link that adds or removes the filter by it."""
    is_only = view.filters["verification"] == state
    link = view.link(verification=None if is_only else state)
    share = requests[state] / requests.total()
    shown = {"state": state, "text": TEXTS[state], "requests": requests[state], "share": share}
    return shown | {"link": link, "is_only": is_only}


def _evidence(rows: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Return the requests with the same state and evidence."""
    requests = Counter[tuple[State, str]]()
    for row in rows:
        requests[row["verification"], row["verified_by"]] += row["views"]
    return tuple(
        {"state": state, "proofs": [*map(_proof, verified_by.split(", "))], "requests": count}
        for (state, verified_by), count in requests.most_common()
    )


def _proof(text: str) -> Proof:
    if copy := _COPY.fullmatch(text):
        known = address_lists.shipped().get(copy["id"])
        return Proof("Address list", copy["id"], date.fromisoformat(copy["day"]), known.source if known else None)
    kind, _, name = text.partition(":")
    return Proof(PROOFS[kind], name) if kind in PROOFS else Proof("", text)


def _false_name(view: View, row: Mapping[str, Any], names: Counter[str | None]) -> dict[str, Any]:
    """Return the spoofed requests in the name of an agent, and their share of all requests in this name."""
    name, requests = row["agent"], row["views"]
    path = f"{view.visit.base}/ai/agents/{name}"
    link = view.link(path, agent=None, operator=None, purpose=None, verification=SPOOFED)
    share = requests / names[name]
    return {"agent": name, "operator": row["operator"], "requests": requests, "share": share, "link": link}
