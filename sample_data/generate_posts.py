"""Write `posts.ndjson`: the views of `readership demo` that no access log has, from beacons and servers.

Each line has the fields of a post to `/v1/analytics/{projectId}/hits`, with the project and the source. The numbers
come from a fixed seed, the readers from `traffic.toml`, and the key of the signatures is a published test key:
https://www.rfc-editor.org/rfc/rfc9421#appendix-B.1.4
"""

import base64
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from random import Random

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sample_data.draws import below, draw, one_of
from sample_data.generate import moment, reader_of
from sample_data.traffic import DAYS, HERE, READERS, Group

SEED = 20260911
SERVER_FIRST_DAY, SERVER_MISSING_DAYS = 10, range(18, 21)
"""Days of the sample, from 0: the first day of the server's posts, and the days on which its posts were lost."""
BEACON_FIRST_DAY = 15
"""First day of the beacons, from 0: that of `BEACONS_FROM` in `api.cli.demo.sample_views`."""
NEW_PAGE_DAY = 27
"""Day on which a page was published, from 0."""
FORUM_LAST_DAY = 18
"""Last day of the project whose log stopped, from 0."""
NEW_PAGE = "/reference/2.0/migrating"
REFERENCE = (
    "/reference",
    "/reference/albums",
    "/reference/export",
    "/reference/résumé",
    "/reference/%E8%A8%AD%E5%AE%9A",
)
MARKDOWN_OF_FIVE = 3
"""Of five AI reads of the reference, the number that ask for Markdown."""
STATUS_WEIGHTS = ((200, 88), (304, 7), (404, 5))
GONE = "/reference/1.0/albums"
"""Path that is not there any more, for the status 404."""
AI_LINKS = (
    "https://chatgpt.com/",
    "https://claude.ai/",
    "https://www.perplexity.ai/",
    "https://gemini.google.com/",
    "https://copilot.microsoft.com/",
    "https://chat.mistral.ai/",
    "https://grok.com/",
)
UTM_SOURCES = ("chatgpt.com", "newsletter", "mastodon", "conference-talk", "release-notes")
ADDRESSES = {
    "GPTBot": "20.171.206.",
    "OAI-SearchBot": "4.227.36.",
    "ChatGPT-User": "4.151.71.",
    "ClaudeBot": "20.64.57.",
    "Claude-SearchBot": "20.64.57.",
    "PerplexityBot": "3.211.124.",
    "CCBot": "18.97.9.",
    "Amazonbot": "3.81.253.",
}
"""Beginnings of addresses in the lists that operators publish, of August and September 2026, by agent."""
LAST_PARTS = {
    "ChatGPT-User": 181,
    "ClaudeBot": 211,
    "Claude-SearchBot": 212,
    "PerplexityBot": 183,
    "CCBot": 170,
    "Amazonbot": 213,
}
"""Last parts of the addresses of agents whose prefixes are short; those of the others are 1 to 100."""
OTHER_ADDRESSES = "192.31.196."
"""Beginning of addresses that are in no list: those of AS112 (RFC 7535), from which no visitor comes."""
IMPOSTORS = ("GPTBot", "GPTBot", "PerplexityBot")
"""Agents whose names are used in requests from OTHER_ADDRESSES on each day of the server."""
CLAUDE_LAST_DAY = 18
"""Last day of such requests in the name of ClaudeBot, from 0: its list of 20 August is older on the later days."""
FORUM_PATHS = ("/", "/t/raw-files", "/t/themes", "/t/albums-on-a-nas", "/u/ana")
SIGNING_KEY = json.loads((HERE / "signing_key.json").read_text())
"""JSON Web Key of the signatures, with its private part. It is a test key of RFC 9421, and proves nothing."""
SIGNING_AGENT = "https://chatgpt.com"
BROWSER_OF_SIGNER = (
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/149.0.0.0 Safari/537.36"
)
"""User agent of ChatGPT's agent, which is that of a browser: only its signature identifies the agent."""
NAME_OF_SIGNER = "Mozilla/5.0 (compatible; ChatGPT Agent/1.0; +https://openai.com)"
SITE, OTHER_SITE = "example.com", "shop.example.net"
SIGNATURE_S = 300
"""Time for which a signature is valid, in seconds."""


@dataclass(frozen=True, slots=True)
class Post:
    """One view. The times are those of the sample log, in September 2026. `address` is that of the visitor."""

    project: str
    source: str
    path: str | None
    timestamp: datetime
    user_agent: str
    referrer: str | None = None
    status: int | None = None
    format: str | None = None
    address: str | None = None
    url: str | None = None
    headers: Mapping[str, str] | None = None


def main(folder: Path) -> None:
    rng = Random(SEED)
    posts = [*server_posts(rng), *beacons(rng), *forum_views(rng), *first_views(rng), *impostors(rng), *signed(rng)]
    lines = [as_json(post) for post in sorted(posts, key=lambda post: (post.project, post.timestamp))]
    (folder / "posts.ndjson").write_bytes("".join(f"{line}\n" for line in lines).encode())


def server_posts(rng: Random) -> Iterator[Post]:
    """Yield the posts of the server of the reference: AI agents and a few crawlers."""
    for day in range(SERVER_FIRST_DAY, DAYS):
        if day in SERVER_MISSING_DAYS:
            continue
        for _ in range(5 + day // 3):
            yield server_post(rng, day, "ai")
        yield server_post(rng, day, "crawlers")
        if day >= NEW_PAGE_DAY:
            for _ in range(3):
                yield server_post(rng, day, "ai", NEW_PAGE)


def server_post(rng: Random, day: int, group: Group, path: str = "") -> Post:
    status = draw(rng, [status for status, _ in STATUS_WEIGHTS], [weight for _, weight in STATUS_WEIGHTS])
    read = GONE if status == 404 else path or one_of(rng, REFERENCE)
    is_markdown = group == "ai" and status != 404 and below(rng, 5) < MARKDOWN_OF_FIVE
    at, reader = moment(rng, day), reader_of(rng, group)
    return Post(
        "demo",
        "server",
        read,
        at,
        reader.user_agent,
        status=status,
        format="text/markdown" if is_markdown else "text/html",
        address=address_of(reader.agent, at),
    )


def address_of(agent: str, at: datetime) -> str | None:
    """Return an address of the agent's operator; None for an agent without one in ADDRESSES."""
    if agent not in ADDRESSES:
        return None
    return f"{ADDRESSES[agent]}{LAST_PARTS.get(agent, 1 + at.second)}"


def impostors(rng: Random) -> Iterator[Post]:
    """Yield requests to the server of the reference that have the user agent of an AI agent, and are not from it."""
    user_agents = {reader.agent: reader.user_agent for reader in READERS if reader.agent}
    for day in range(SERVER_FIRST_DAY, DAYS):
        if day in SERVER_MISSING_DAYS:
            continue
        for agent in (*IMPOSTORS, *(["ClaudeBot"] if day < CLAUDE_LAST_DAY else [])):
            address = f"{OTHER_ADDRESSES}{1 + below(rng, 200)}"
            yield Post(
                "demo",
                "server",
                one_of(rng, REFERENCE),
                moment(rng, day),
                user_agents[agent],
                status=200,
                format="text/html",
                address=address,
            )


def signed(rng: Random) -> Iterator[Post]:
    """Yield signed requests to the server of the reference: by ChatGPT's agent, or signed for another site."""
    for day in range(SERVER_FIRST_DAY, DAYS):
        if day in SERVER_MISSING_DAYS:
            continue
        for _ in range(2):
            yield signed_post(rng, day, BROWSER_OF_SIGNER, SITE)
        if day % 2:
            yield signed_post(rng, day, NAME_OF_SIGNER, OTHER_SITE)


def signed_post(rng: Random, day: int, user_agent: str, signed_site: str) -> Post:
    """Return a request to SITE whose signature is valid for `signed_site`."""
    path, at = one_of(rng, REFERENCE), moment(rng, day)
    browser = {"accept-language": "en-US,en;q=0.9", "sec-fetch-mode": "navigate"}
    return Post(
        "demo",
        "server",
        None,
        at,
        user_agent,
        status=200,
        format="text/html",
        url=f"https://{SITE}{path}",
        headers={**browser, **signature(signed_site, at)},
    )


def signature(site: str, at: datetime) -> Mapping[str, str]:
    """Return the headers of a request to a site that SIGNING_KEY signs (RFC 9421, section 3.1)."""
    created_s = int(at.timestamp())
    parameters = (
        f'("@authority" "signature-agent");created={created_s};keyid="{thumbprint()}";alg="ed25519"'
        f';expires={created_s + SIGNATURE_S};tag="web-bot-auth"'
    )
    agent = f'"{SIGNING_AGENT}"'
    base = f'"@authority": {site}\n"signature-agent": {agent}\n"@signature-params": {parameters}'
    private = Ed25519PrivateKey.from_private_bytes(base64.urlsafe_b64decode(SIGNING_KEY["d"] + "="))
    proof = base64.b64encode(private.sign(base.encode())).decode()
    return {"signature-agent": agent, "signature-input": f"sig1={parameters}", "signature": f"sig1=:{proof}:"}


def thumbprint() -> str:
    """Return the id of SIGNING_KEY (RFC 7638)."""
    members = json.dumps({name: SIGNING_KEY[name] for name in ("crv", "kty", "x")}, separators=(",", ":"))
    return base64.urlsafe_b64encode(hashlib.sha256(members.encode()).digest()).rstrip(b"=").decode()


def beacons(rng: Random) -> Iterator[Post]:
    """Yield the beacons of the reference: people, many of them sent by an AI product or a campaign."""
    for day in range(BEACON_FIRST_DAY, DAYS):
        for _ in range(4):
            yield beacon(rng, day, one_of(rng, REFERENCE), referrer=one_of(rng, AI_LINKS))
        for _ in range(2):
            yield beacon(rng, day, f"{one_of(rng, REFERENCE)}?utm_source={one_of(rng, UTM_SOURCES)}")
        if day >= NEW_PAGE_DAY:
            for _ in range(6):
                yield beacon(rng, day, NEW_PAGE, referrer="https://news.ycombinator.com/")


def beacon(rng: Random, day: int, path: str, referrer: str | None = None, project: str = "demo") -> Post:
    return Post(project, "beacon", path, moment(rng, day), reader_of(rng, "people").user_agent, referrer)


def forum_views(rng: Random) -> Iterator[Post]:
    """Yield the views of a site whose beacons and log sent views of people on the same days, and whose log stopped."""
    for day in range(DAYS):
        for _ in range(4 + below(rng, 6)):
            yield beacon(rng, day, one_of(rng, FORUM_PATHS), project="forum")
        if day > FORUM_LAST_DAY:
            continue
        groups: Sequence[Group] = ("people", "people", "people", "ai", "ai", "ai", "crawlers")
        for group in (one_of(rng, groups) for _ in range(3 + below(rng, 5))):
            yield Post(
                "forum", "log", one_of(rng, FORUM_PATHS), moment(rng, day), reader_of(rng, group).user_agent, status=200
            )


def first_views(rng: Random) -> Iterator[Post]:
    """Yield the beacons of a site that was set up on the last day."""
    for path in ("/", "/", "/hello-world"):
        yield beacon(rng, DAYS - 1, path, project="new-blog")


def as_json(post: Post) -> str:
    values = {field.name: getattr(post, field.name) for field in fields(post)}
    values["timestamp"] = f"{post.timestamp:%Y-%m-%dT%H:%M:%SZ}"
    values["userAgent"] = values.pop("user_agent")
    return json.dumps({name: value for name, value in values.items() if value is not None}, ensure_ascii=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
