"""The version of the rules: a hash of all data that decides who a user agent is, and of nothing else."""

import hashlib
from collections.abc import Collection, Iterable
from importlib.metadata import version

import msgspec

from ingest.classification.agents import Agent
from ingest.classification.device import BOT_WORD, ENGINE, MATCHED_CHARACTERS_MAX, SCREENS
from ingest.classification.rules import Rules

ALGORITHM = 2
"""Number of the steps that apply the rule data. Add one when code changes an answer that no rule row changes: the order
of the steps, how words are split, what counts as a tablet. `tests/ingest/test_classify.py` fails if the answers for the
labelled set changed and this number did not."""

PACKAGES = ("crawler-user-agents", "user-agents", "ua-parser", "ua-parser-builtins", "ua-parser-rs", "google-re2")
"""Packages whose own rules and parsers decide too, by their version."""


def version_of(agents: Iterable[Agent], rules: Rules, left_out: Collection[str], only_as_name: Collection[str]) -> str:
    """Return 12 hexadecimal digits. The same rule data gives the same digits in every process and checkout.

    The source, the day of checking and the note of an agent change no answer and are left out.
    """
    data = (
        ALGORITHM,
        [version(package) for package in PACKAGES],
        [(agent.name, agent.tokens, agent.operator, agent.purpose) for agent in agents],
        rules,
        sorted(left_out),
        sorted(only_as_name),
        (MATCHED_CHARACTERS_MAX, ENGINE.pattern, BOT_WORD.pattern, dict(SCREENS)),
    )
    return hashlib.sha256(msgspec.json.encode(data)).hexdigest()[:12]
