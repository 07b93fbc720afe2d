"""Attributes of user agents: the answers of the rules, joined with those of the parsers.

The module does not import Arrow, so that a worker process of `pool` starts early.
"""

from collections.abc import Sequence
from functools import lru_cache

from ingest.classification.classifier import RULESET, Classification, classify_all
from ingest.classification.device import Device
from ingest.classification.pool import Attributes


def attributes(user_agents: Sequence[str]) -> list[Attributes]:
    """Return the attributes of each user agent; equal attributes are one object, which makes a pickled list short.

    Only people have a browser. For an unknown program, ua-parser takes a part of the user agent as the browser, such as
    "com/bot" from the URL of OpenAI's page.
    """
    return [_shared(classification, device) for classification, device in classify_all(user_agents)]


@lru_cache(4_096)
def _shared(classification: Classification, device: Device) -> Attributes:
    named, browser = classification, device.browser if classification.traffic == "human" else None
    answer = named.traffic, named.agent, named.operator, named.purpose, named.rule
    return (*answer, RULESET, browser, device.os, device.device)
