"""A running service whose project has page views, keys, agent jobs and a share link, and an address of each page."""

import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx

from agent.jobs import configuration, journal, queue, store
from agent.jobs.configuration import Configuration
from agent.jobs.queue import Outcome
from api import settings
from api.accounts import keys, one_time_links, sessions, share_links, users
from api.dashboard.web.routes import Access, Page
from tests.processes.running import PROJECT, Running
from warehouse.control import database, goals, projects
from warehouse.database.pool import Pool

PERSON = "Mozilla/5.0 (X11; Linux x86_64; rv:155.0) Gecko/20100101 Firefox/155.0"
PHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.0 "
    "Mobile/15E148 Safari/604.1"
)
GPTBOT = "Mozilla/5.0 (compatible; GPTBot/1.3; +https://openai.com/gptbot)"
GPTBOT_ADDRESS = "20.171.206.5"
"""An address in the list of GPTBot: the pages of AI readers show verified reads with their evidence."""
ATTACK = "\"><script>window.attacked = 1</script><img src=x onerror='window.attacked = 1'>"
"""HTML that runs a script in a page that does not escape it."""
READERS = (
    PERSON,
    PHONE,
    GPTBOT,
    "Mozilla/5.0 (compatible; ClaudeBot/1.0; +claudebot@anthropic.com)",
    "Mozilla/5.0 (compatible; PerplexityBot/1.0; +https://perplexity.ai/perplexitybot)",
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    f"Mozilla/5.0 (compatible; GPTBot/1.3{ATTACK})",
    f"curl/8.9.1 {ATTACK}",
)
REFERRERS = (None, "https://www.google.com/", "https://chatgpt.com/", f"https://evil.example/{ATTACK}")
PATHS = (
    "/",
    "/docs/install",
    f"/{ATTACK}",
    "/docs/a-path-that-is-much-longer-than-a-telephone-is-wide/and-goes-on/" + "x" * 80,
)
DAYS = 40
EMPTY = "e" * 63
"""Project without page views, keys and jobs, whose id is as long as possible and a single word."""
LONG = "n" * 100
"""The longest name of a user, a key and a share link, as a single word."""
MINUTE_US = 60_000_000


@dataclass(frozen=True)
class Sample:
    """The service at `url`, its data folder, the session of an owner, and values for the paths of pages."""

    url: str
    data: Path
    session: str
    parameters: dict[str, str]

    def address(self, page: Page) -> str:
        """Return the path of a page with the parameters of the sample. A page may need a query beside its path."""
        path = re.sub(r"\{(\w+)(?::path)?\}", lambda match: self.parameters[match[1]], page.path)
        return path + QUERIES.get(page.path, "")

    def empty_address(self, page: Page) -> str:
        """Return the path of a page about the project that has no page views, keys and jobs."""
        return page.path.replace("{project}", EMPTY) + QUERIES.get(page.path, "")

    def session_for(self, page: Page) -> str | None:
        """Return the session for a page: none for those that people without a session open."""
        return None if page.access in (Access.PUBLIC, Access.SHARED, Access.SHARED_ALL) else self.session


QUERIES = {
    "/shared/{share}/page": "?path=/docs/install",
    "/projects/{project}/why": "?userAgent=GPTBot/1.3&search=claude",
    "/projects/{project}/page": "?path=/docs/install",
    "/projects/{project}/setup": "?test=1",
}


def create(running: Running) -> Sample:
    """Fill a new service with the sample."""
    _post_views(running)
    engine = database.connect(settings.read({}, running.data).database_url)
    now_s = int(time.time())
    owner = users.create(engine, "ada", "owner", None, now_s)
    users.create(engine, f"grace {ATTACK}", "viewer", None, now_s)
    parameters = {
        "project": PROJECT,
        "agent": "GPTBot",
        "job": _add_jobs(engine),
        "turn": "1",
        "share": share_links.create(engine, PROJECT, f"For the board {ATTACK}", now_s, pages="all")[1],
        "token": one_time_links.create(engine, "password", owner.id, now_s + 86_400),  # for a run that takes hours
    }
    for name in (f"key {ATTACK}", LONG):
        keys.create(engine, PROJECT, name, "read", None, now_s)
    users.create(engine, LONG, "viewer", None, now_s)
    share_links.create(engine, PROJECT, LONG, now_s)
    goals.add(engine, PROJECT, f"Read {ATTACK}", "path", "/docs/*")
    goals.add(engine, PROJECT, LONG, "event", LONG)
    projects.create(engine, EMPTY, (), now_s)
    session = sessions.start(engine, owner.id, now_s)
    engine.close()
    return Sample(running.url, running.data, session, parameters)


def _post_views(running: Running) -> None:
    now = datetime.now(UTC)
    hits = [
        {
            "path": PATHS[(day + place) % len(PATHS)],
            "userAgent": reader,
            "timestamp": (now - timedelta(days=day, minutes=place + 1)).isoformat(),
            **({"address": GPTBOT_ADDRESS} if reader == GPTBOT else {}),
            **({"referrer": referrer} if (referrer := REFERRERS[(day + place) % len(REFERRERS)]) else {}),
        }
        for day in range(DAYS)
        for place, reader in enumerate(READERS)
    ]
    errors = [
        {**hit, "path": f"{hit['path']}/gone", "status": 404} for hit in hits if hit["userAgent"] not in (PERSON, PHONE)
    ]
    assert running.post(hits + errors).status_code == 202
    beacon = httpx.post(running.hits, json={"url": "https://example.com/docs/install"}, headers={"User-Agent": PERSON})
    assert beacon.status_code == 202


def _add_jobs(engine: Pool) -> str:
    """Add a failed, an active and a completed job; return the id of the completed one."""
    config = {"repository": "https://git.example/docs", "preset": "command", "command": ("true",)}
    configuration.store(engine, PROJECT, configuration.changed(Configuration(repository=""), config))  # type: ignore[arg-type]
    now_us = time.time_ns() // 1_000
    ids = []
    for outcome in (
        Outcome(f"the repository cannot be read {ATTACK}"),
        Outcome(None, "https://git.example/docs/pull/7"),
    ):
        ids.append(store.create(engine, PROJECT, f"Explain the retry settings {ATTACK}\n{ATTACK}", None, now_us).job.id)
        lease = queue.claim(engine, "test", now_us, MINUTE_US)
        assert lease is not None
        with engine.transaction() as connection:
            journal.append(connection, ids[-1], lease.turn, "step", f"checked out main {ATTACK}", now_us)
        queue.renew(engine, lease, now_us, MINUTE_US, f"{ATTACK} a long line of output " * 100)
        queue.finish(engine, lease, outcome, now_us + MINUTE_US)
    store.create(engine, PROJECT, "Write an llms.txt", None, now_us)
    return ids[-1]
