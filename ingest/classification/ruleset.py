"""Version of the rules: a hash of all data that decides a classification, and of nothing else."""

import hashlib
from collections.abc import Collection, Iterable
from importlib.metadata import version

import msgspec

from ingest.classification.agents import Agent
from ingest.classification.device import BOT_WORD, ENGINE, MATCHED_CHARACTERS_MAX, SCREENS
from ingest.classification.rules import Rules

ALGORITHM = 3
"""Version of the code that applies the rule data. Increase it when a change of code, and of no row, changes an
answer: the order of the steps, the splitting of words, the definition of a tablet.
`tests/ingest/classification/test_ruleset.py` fails if the answers for the labelled set changed while the data and this
number did not."""

PACKAGES = ("crawler-user-agents", "user-agents", "ua-parser", "ua-parser-builtins", "ua-parser-rs", "google-re2")
"""Packages whose own rules and parsers take part in the answers; their versions are hashed."""


def version_of(agents: Iterable[Agent], rules: Rules, ignored: Collection[str], own_name: Collection[str]) -> str:
    """Return 12 hexadecimal digits. The same rule data gives the same digits in every process and checkout.

    The `source`, `checked`, `note` and `until` of an agent change no answer and are not hashed.
    """
    data = (
        ALGORITHM,
        [version(package) for package in PACKAGES],
        [(agent.name, agent.tokens, agent.operator, agent.purpose) for agent in agents],
        rules,
        sorted(ignored),
        sorted(own_name),
        (MATCHED_CHARACTERS_MAX, ENGINE.pattern, BOT_WORD.pattern, dict(SCREENS)),
    )
    return hashlib.sha256(msgspec.json.encode(data)).hexdigest()[:12]
