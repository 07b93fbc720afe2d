"""Rules for tests, simple enough to apply by hand: only the first word of the user agent matters."""

import pyarrow as pa

from tests.warehouse.site import Row
from warehouse.maintenance.reclassification.reclassify import Rules
from warehouse.schema import CLASSIFICATION

TODAY = "today"
AGENTS = {"GPTBot": "OpenAI", "ClaudeBot": "Anthropic"}


def classification_of(user_agent: str) -> dict[str, str | None]:
    """Return `ai` for an agent's name as the first word, `bot` for an empty one, and else `human` with that browser."""
    word = user_agent.partition("/")[0]
    unknown: dict[str, str | None] = {**dict.fromkeys(CLASSIFICATION.names), "ruleset": TODAY, "user_agent": user_agent}
    if word in AGENTS:
        return {
            **unknown,
            "traffic": "ai",
            "agent": word,
            "operator": AGENTS[word],
            "purpose": "data",
            "rule": f"ai:{word}",
        }
    if not word:
        return {**unknown, "traffic": "bot", "rule": "bot:empty"}
    return {**unknown, "traffic": "human", "rule": "human", "browser": word, "os": "os", "device": "desktop"}


def reclassified(row: Row) -> Row:
    """Return a stored row under these rules. The verdict on an agent stays while the rules name the same agent, and if
    the same rule has a new name for it."""
    new = row | classification_of(str(row["user_agent"]))
    if new["agent"] == row["agent"]:
        retained = (
            ("traffic", "operator", "purpose", "rule") if row["verification"] == "spoofed" and row["agent"] else ()
        )
        return new | {name: row[name] for name in retained}
    if new["agent"] is not None and new["rule"] == row["rule"]:
        return new | {name: row[name] for name in ("verification", "verified_by")}
    is_claimed = new["agent"] is not None and new["traffic"] != "human"
    verification = ("not_checked" if is_claimed else None) if row["verification"] else None
    return new | {"verification": verification, "verified_by": None}


def table(user_agents: list[str]) -> pa.Table:
    return pa.Table.from_pylist([classification_of(each) for each in user_agents], CLASSIFICATION)


RULES = Rules(TODAY, table)
