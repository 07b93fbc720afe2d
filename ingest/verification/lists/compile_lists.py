"""Compilation of the shipped address lists from collected facts.

    python -m ingest.verification.lists.compile_lists FACTS.jsonl

A line of the facts is one list as its operator published it: `list`, `operator`, `source`, `created`, `seen`, `copies`
and `prefixes`. Where two copies differ, `prefixes` are those of the newer copy, and `only_in_older_copy` and
`only_in_newer_copy` are the difference, which becomes the remark of the list.
"""

import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import NamedTuple

import msgspec

from ingest.verification.address_lists import SHIPPED, AddressList, encode, read_time, sha256_of, sorted_prefixes
from warehouse.plural import counted


class Fact(msgspec.Struct, frozen=True):
    """A list as its operator published it. `list` is the name in the facts."""

    list: str
    operator: str
    source: str
    created: str | None
    seen: date
    copies: int
    prefixes: tuple[str, ...]
    only_in_older_copy: tuple[str, ...] = ()
    only_in_newer_copy: tuple[str, ...] = ()


class Use(NamedTuple):
    """Use of a list in this program: its id, and the agents whose requests it verifies. The other fields are those of
    `AddressList`."""

    id: str
    tokens: tuple[str, ...]
    complete: bool = True
    never_spoofed: tuple[str, ...] = ()
    exempt: tuple[str, ...] = ()
    is_json: bool = True


_GOOGLE_EITHER = ("GoogleOther", "Google-CloudVertexBot")
"""Agents that some of Google's pages name as common crawlers and others as special ones: either list verifies them."""
_GOOGLE_COMMON = (
    "Googlebot", "Googlebot-Image", "Googlebot-News", "Googlebot-Video", "Storebot-Google", "Google-InspectionTool",
)  # fmt: skip
_GOOGLE_FETCHERS = (
    "Google-Read-Aloud", "Google-Site-Verification", "Google-NotebookLM", "Google-GeminiNotebook", "GoogleProducer",
)  # fmt: skip
"""User-triggered fetchers that https://developers.google.com/crawling/docs/crawlers-fetchers/google-user-triggered-fetchers
names."""
USES: Mapping[str, Use] = {
    "gptbot": Use("openai-gptbot", ("GPTBot",)),
    "oai-searchbot": Use("openai-searchbot", ("OAI-SearchBot",)),
    "chatgpt-user": Use("openai-chatgpt-user", ("ChatGPT-User",)),
    "oai-adsbot": Use("openai-adsbot", ("OAI-AdsBot",)),
    # Claude Code sends Claude-User from users' machines.
    "anthropic": Use(
        "anthropic-bots", ("ClaudeBot", "Claude-User", "Claude-SearchBot"), never_spoofed=("Claude-User",)
    ),
    "perplexitybot": Use("perplexity-bot", ("PerplexityBot",)),
    "perplexity-user": Use("perplexity-user", ("Perplexity-User",)),
    "googlebot": Use("google-common-crawlers", (*_GOOGLE_COMMON, *_GOOGLE_EITHER)),
    "google-special": Use(
        "google-special-crawlers",
        ("AdsBot-Google", "APIs-Google", "Mediapartners-Google", "Google-Safety", *_GOOGLE_EITHER),
    ),
    "google-user-triggered": Use("google-user-triggered-fetchers", _GOOGLE_FETCHERS),
    "google-user-triggered-fetchers": Use("google-user-triggered-fetchers-google", _GOOGLE_FETCHERS),
    "google-user-triggered-agents": Use("google-user-triggered-agents", ("Google-Agent",)),
    # The classification names adidxbot, Microsoft's crawler for advertisements, bingbot too: its URL has that word.
    "bingbot": Use("microsoft-bingbot", ("bingbot",), exempt=("adidxbot",)),
    "applebot": Use("apple-applebot", ("Applebot",)),
    "duckduckbot": Use("duckduckgo-duckduckbot", ("DuckDuckBot",)),
    "duckassistbot": Use("duckduckgo-duckassistbot", ("DuckAssistBot",)),
    "amazonbot": Use("amazon-amazonbot", ("Amazonbot",), is_json=False),
    "amzn-searchbot": Use("amazon-searchbot", ("Amzn-SearchBot",), is_json=False),
    "amzn-user": Use("amazon-user", ("Amzn-User",), is_json=False),
    "mistral-ai-index": Use("mistral-index", ("MistralAI-Index",)),
    "mistral-ai-user": Use("mistral-user", ("MistralAI-User",)),
    "ccbot": Use("commoncrawl-ccbot", ("CCBot",)),
    "ahrefs-crawler": Use("ahrefs-crawlers", ("AhrefsBot",), complete=False),
    "parallel-shapbot": Use("parallel-shapbot", ("ShapBot",), complete=False),
}
"""Uses of the lists by their names in the facts. A list is `complete` only if the operator documents that it has all
addresses of the agent."""


def compile_list(fact: Fact) -> AddressList:
    """Return the address list of a fact.

    Raises: KeyError for a list without a row in USES, ValueError for a text that is not a prefix or a time.
    """
    use = USES[fact.list]
    prefixes = sorted_prefixes(fact.prefixes)
    return AddressList(
        id=use.id,
        operator=fact.operator,
        tokens=use.tokens,
        complete=use.complete,
        never_spoofed=use.never_spoofed,
        exempt=use.exempt,
        source=fact.source,
        is_json=use.is_json,
        created=read_time(fact.created) if fact.created else None,
        seen=fact.seen,
        copies=fact.copies,
        remark=_remark(fact),
        sha256=sha256_of(prefixes),
        prefixes=prefixes,
    )


def _remark(fact: Fact) -> str:
    older, newer = len(fact.only_in_older_copy), len(fact.only_in_newer_copy)
    if not older + newer:
        return ""
    return (
        f"The prefixes are those of the newer copy. {counted(newer, 'prefix', 'prefixes')} only in the newer copy,"
        f" {counted(older, 'prefix', 'prefixes')} only in the older one."
    )


def main(facts: Path, folder: Path = SHIPPED) -> None:
    """Replace the lists in a folder by those of a file of facts."""
    lists = [compile_list(msgspec.json.decode(line, type=Fact)) for line in facts.read_bytes().splitlines()]
    for path in folder.glob("*.json"):
        path.unlink()
    for each in lists:
        (folder / f"{each.id}.json").write_bytes(encode(each))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
