"""Tables of the rules: the rows of `rules.toml`, and the patterns of crawler-user-agents that are used."""

import tomllib
from pathlib import Path

import crawleruseragents  # type: ignore[import-untyped]  # ships no types
import msgspec

from ingest.classification import agents

IGNORED_PATTERNS = {
    r"AP3A\.240617\.008": "everybody whose phone runs one build of Android 15",
    "MetaIAB Facebook": "readers in Facebook's in-app browser",
    r"Code\/1\.": "developers with a page open in Visual Studio Code",
    r"Trae\/": "developers with a page open in the Trae editor",
    "Fluid": "users of Fluid, which makes a Mac app of a site",
    "Devin": "people who gave their phone their name",
    "[cC]laude[bB]ot": "ClaudeBot, which is an agent",
}
"""Patterns of crawler-user-agents that are not used, with the people or the agent that they match.

The patterns of crawler-user-agents for the agents of `agents.toml` are not used either: without word boundaries the
pattern YouBot would match ShowYouBot.
"""

OWN_NAME_PATTERNS = frozenset(
    {
        "WhatsApp", "Viber", r"Instapaper\/", r"Tumblr\/", r"Notion\/", r"PayPal\/", r"Bluesky\/", r"Asana\/",
        r"Overcast\/", r"PocketCasts\/", "Podimo", r"Grammarly\/", r"Klaviyo\/", r"upday\/", "CapitalOneShopping",
        "GoPay", "Disqus", "Fever", "Mastodon", "Feedly", "Zapier", "HubSpot", "Blackboard", "Tweakers", "MailChimp",
        "Jumio", r"Retool\/", r"Make\/", r"RED\/", "Sonic", "Odin;", "Magellan", "Adventurer", "alienfarm", "Upflow",
        "Trove", "Hello World", "Determ", "ds9", "fluffy", "speedy", "yanga", "Aranea", "Sogou", r"Daum\/", "Hatena",
        "Goodreads", "Butterfly", "coccoc", "Expanse", r"008\/",
    }
)  # fmt: skip
"""Patterns of crawler-user-agents that are matched only at the start of a user agent or after its `Mozilla/5.0
(compatible;`. Elsewhere they also match an app with a web view, a device (ViewSonic, HTC Butterfly, Odin) or a common
word."""


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of a table of rules. `name` is the name of the bot, if the row matches one bot."""

    kind: str
    pattern: str
    name: str | None = None


class Rules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The tables of `rules.toml`, in the order of their search. In each table the first row that matches decides.

    The patterns of `accept` are searched in the media types of a request's Accept header, all others in its user agent.
    `crawler_names` are names of bots, by their pattern of crawler-user-agents.
    """

    named_bot: tuple[Rule, ...]
    known_person: tuple[Rule, ...]
    bot_habit: tuple[Rule, ...]
    person: tuple[Rule, ...]
    unshaped: tuple[Rule, ...]
    accept: tuple[Rule, ...]
    crawler_names: dict[str, str]


class Crawler(msgspec.Struct, frozen=True):
    """A row of crawler-user-agents. `instances` are user agents that the pattern matches; `url` is the bot's page."""

    pattern: str
    instances: tuple[str, ...]
    description: str = ""
    url: str | None = None


def parse(toml: str) -> Rules:
    """Return the tables of a TOML text.

    Raises: msgspec.ValidationError for an unknown or missing field, ValueError if the last row of `unshaped` has a
    pattern: the last row must match every user agent.
    """
    rules = msgspec.convert(tomllib.loads(toml), Rules)
    if rules.unshaped[-1].pattern:
        raise ValueError("rules.toml: the last row of unshaped must match every text: give it an empty pattern")
    return rules


def read_crawlers(rows: object) -> tuple[Crawler, ...]:
    """Return the rows of crawler-user-agents that are used.

    Raises: LookupError if the package no longer has a pattern of IGNORED_PATTERNS, OWN_NAME_PATTERNS or
    `crawler_names`: a person must compare these with the new version of the package.
    """
    crawlers = msgspec.convert(rows, tuple[Crawler, ...])
    named = IGNORED_PATTERNS.keys() | OWN_NAME_PATTERNS | RULES.crawler_names.keys()
    if missing := named - {row.pattern for row in crawlers}:
        raise LookupError(f"crawler-user-agents no longer has {', '.join(sorted(missing))}")
    used = (row for row in crawlers if row.pattern not in IGNORED_PATTERNS)
    return tuple(row for row in used if agents.find(row.pattern.replace("\\", "")) is None)


RULES = parse(Path(__file__).with_name("rules.toml").read_text(encoding="utf-8"))
CRAWLERS = read_crawlers(crawleruseragents.CRAWLER_USER_AGENTS_DATA)
