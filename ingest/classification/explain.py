"""Explanation of a classification: the steps that the classifier tries, up to the one that decides."""

from collections.abc import Mapping
from datetime import date
from typing import Annotated

import msgspec
import re2  # type: ignore[import-untyped]  # ships no types
from msgspec import structs

from ingest.classification import agents, classifier
from ingest.classification.agents import Agent, Purpose
from ingest.classification.classifier import Decision, StepName
from ingest.classification.device import BOT_WORD
from ingest.classification.rules import Crawler, Rule


class TriedStep(msgspec.Struct, frozen=True, rename="camel"):
    """A step that was tried. Only the last step matched; in the others, all fields after `matched` are null."""

    name: Annotated[str, msgspec.Meta(description="Name of the step.")]
    looks_for: Annotated[str, msgspec.Meta(description="User agents that the step looks for.")]
    matched: Annotated[bool, msgspec.Meta(description="Whether the step decided.")]
    text: Annotated[
        str | None, msgspec.Meta(description="Part of the user agent, or of the Accept header, that matched.")
    ] = None
    rule: Annotated[str | None, msgspec.Meta(description="Name of the rule, which is stored with each hit.")] = None
    meaning: Annotated[str | None, msgspec.Meta(description="Program that has this rule, in words.")] = None
    source: Annotated[str | None, msgspec.Meta(description="File or package that has the rule.")] = None
    reference: Annotated[str | None, msgspec.Meta(description="Page about the agent or bot.")] = None
    operator: Annotated[str | None, msgspec.Meta(description="Operator of the AI agent.")] = None
    purpose: Annotated[Purpose | None, msgspec.Meta(description="Purpose of the AI agent.")] = None
    checked: Annotated[date | None, msgspec.Meta(description="Day on which the agent's row was checked.")] = None
    note: Annotated[str | None, msgspec.Meta(description="Remark of the agent's row.")] = None


NAMES: Mapping[StepName, str] = {
    "agents": "AI agents",
    "named-bots": "Bots with a name",
    "crawlers": "List of crawlers",
    "habits": "Habits of bots",
    "user-agents": "Library of devices",
    "people": "Shapes of browsers",
    "the-rest": "Everything else",
}
"""Name of each step, for readers."""
LOOKS_FOR: Mapping[StepName, str] = {
    "agents": "The name of a known AI agent as a whole word, outside of addresses of pages.",
    "named-bots": "The name of a common HTTP library or monitor, or no user agent at all.",
    "crawlers": "A pattern of the public list crawler-user-agents.",
    "habits": "What bots have and browsers do not: the address of a page or a mailbox, a headless browser, words such"
    " as crawler, monitor or feed reader. A phone's app or a browser that would be mistaken for a bot is a person.",
    "user-agents": "A bot according to the packages ua-parser and user-agents.",
    "people": "The form of the user agent of a browser, an app's web view or a known device.",
    "the-rest": "A program without the form of a browser. It counts as a bot; the words of its name give the kind.",
}
"""User agents that each step looks for, in words."""
ACCEPT_NAME = "Accept header"
"""Name of the step of the Accept header, which is tried only if the header is known."""
ACCEPT_LOOKS_FOR = "A media type that AI agents ask for and browsers do not."
"""Headers that the step of the Accept header looks for, in words."""
MEANINGS: Mapping[str, str] = {
    "accept-markdown": "a program that asks for Markdown, as coding agents do",
    "app-client": "an app that fetches data without showing a page",
    "automation": "a program named as a crawler, checker, fetcher or robot",
    "browser": "a browser, or an app that shows pages",
    "compatible-comment": "a browser's user agent with a second program in it",
    "console": "the browser of a game console",
    "contact-address": "a bot that gives the address of its page, as crawlers do",
    "contact-mail": "a program that gives a mail address",
    "contact-page": "a program that gives the address of a page",
    "dalvik": "an app on an Android device",
    "device": "a phone or tablet",
    "empty-user-agent": "a program without a user agent",
    "feature-phone": "the browser of a feature phone or an early smartphone",
    "feed-reader": "a program that fetches feeds",
    "headless-browser": "a browser that a program controls",
    "http-library": "an HTTP client library",
    "link-checker": "a program that checks links",
    "media-player": "a program that plays audio or video",
    "monitor": "a program that checks whether the site works",
    "not-a-browser": "a program without the form of a browser",
    "office-program": "an office program that fetches a link before a person opens it",
    "package-manager": "a program that installs software",
    "podcast-client": "a program that fetches podcasts",
    "preview": "a program that makes previews of pages",
    "scanner": "a program that looks for vulnerabilities",
    "television": "the browser of a television",
    "text-browser": "a browser for text",
    "user-agents": "a bot according to the packages ua-parser and user-agents",
    "validator": "a program that validates pages",
    "web-view": "an app that shows pages",
}
"""Meaning of each kind of rule, which is the second part of the name of a rule of people and bots."""
PURPOSES: Mapping[Purpose, str] = {
    "training": "collects pages to train models",
    "search": "indexes pages for AI search",
    "assistant": "fetches a page because a person asked for it",
    "agent": "acts or writes code by itself",
    "data": "resells pages to AI companies",
}
"""Meaning of each purpose of an AI agent."""
_SOURCES: Mapping[StepName, str] = {
    "agents": "agents.toml",
    "crawlers": "crawler-user-agents",
    "user-agents": "ua-parser, user-agents",
}


def explain(user_agent: str, accept: str | None = None) -> tuple[TriedStep, ...]:
    """Return the steps that the classifier tries, in order. The last step matches, and has the rule of `classify`.

    The step of the Accept header is tried only if the header is known and the user agent names no agent or bot.
    """
    (text,), (first_matches,), (device,) = classifier.prepare([user_agent])
    steps: list[TriedStep] = []
    for name, find in classifier.STEPS:
        decision = find(text, first_matches, device)
        is_unnamed = decision is not None and decision.answer.agent is None
        if accept is not None and (name == classifier.AFTER_ACCEPT or is_unnamed):
            match = classifier.find_accept(accept)
            if match is not None:
                return (*steps, _matched(ACCEPT_NAME, ACCEPT_LOOKS_FOR, "rules.toml", match.decision, match.text))
            steps.append(TriedStep(ACCEPT_NAME, ACCEPT_LOOKS_FOR, matched=False))
            accept = None
        if decision is not None:
            source = _SOURCES.get(name, "rules.toml")
            return (*steps, _matched(NAMES[name], LOOKS_FOR[name], source, decision, _matched_text(decision, text)))
        steps.append(TriedStep(NAMES[name], LOOKS_FOR[name], matched=False))
    raise AssertionError("the last step decides for every user agent")


def _matched(name: str, looks_for: str, source: str, decision: Decision, text: str | None) -> TriedStep:
    step = TriedStep(
        name,
        looks_for,
        matched=True,
        text=text or None,
        rule=decision.answer.rule,
        meaning=_meaning(decision),
        source=source,
        operator=decision.answer.operator,
        purpose=decision.answer.purpose,
    )
    row = decision.origin
    if isinstance(row, Agent):
        return structs.replace(step, reference=row.source, checked=row.checked, note=row.note)
    return structs.replace(step, reference=row.url) if isinstance(row, Crawler) else step


def _meaning(decision: Decision) -> str:
    if decision.answer.purpose is not None:
        return PURPOSES[decision.answer.purpose]
    row = decision.origin
    if isinstance(row, Crawler):
        return row.description
    return MEANINGS[row.kind if isinstance(row, Rule) else decision.answer.rule.partition(":")[2]]


def _matched_text(decision: Decision, text: str) -> str | None:
    """Return the part of the text that decided: of a parser, its bot word, or None without one."""
    if isinstance(decision.origin, Agent):
        return agents.matched_text(text)
    pattern = decision.pattern
    match = re2.search(pattern, text) if pattern is not None else BOT_WORD.search(text.lower())
    return match[0] if match else None
