"""Rules for tests, small enough to work out by hand: they look at the user agent's first word alone."""

import pyarrow as pa

from warehouse.maintenance.reclassify import Rules
from warehouse.schema import CLASSIFICATION

TODAY = "today"
AGENTS = {"GPTBot": "OpenAI", "ClaudeBot": "Anthropic"}


def says(user_agent: str) -> dict[str, str | None]:
    """An agent is named by the first word; nothing is a bot; whatever else is a person, whose browser is that word."""
    word = user_agent.partition("/")[0]
    said: dict[str, str | None] = {**dict.fromkeys(CLASSIFICATION.names), "ruleset": TODAY, "user_agent": user_agent}
    if word in AGENTS:
        return {
            **said,
            "traffic": "ai",
            "agent": word,
            "operator": AGENTS[word],
            "purpose": "data",
            "rule": f"ai:{word}",
        }
    if not word:
        return {**said, "traffic": "bot", "rule": "bot:empty"}
    return {**said, "traffic": "human", "rule": "human", "browser": word, "os": "os", "device": "desktop"}


def table(user_agents: list[str]) -> pa.Table:
    return pa.Table.from_pylist([says(each) for each in user_agents], CLASSIFICATION)


RULES = Rules(TODAY, table)
