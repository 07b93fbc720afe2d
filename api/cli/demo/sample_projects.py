"""The sample projects, with their views, keys, share link, goals, robots.txt and agent jobs."""

from contextlib import closing, suppress
from datetime import UTC, date, datetime, time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args
from urllib.parse import urlsplit

import msgspec

from agent.jobs import configuration, queue, store
from agent.jobs.configuration import Configuration
from agent.jobs.queue import Outcome
from agent.jobs.steps import CheckOutStep, Step, Steps
from api.accounts import keys, share_links
from api.cli.demo import sample_views
from api.cli.log_import.reading import ledger_from_us
from api.dashboard.robots import texts
from api.settings import Settings
from ingest.hits.row import Site, row
from ingest.imports.importer import Options, import_logs
from ingest.visitors.salts import open_salts
from warehouse.control import goals, projects, source_policies, store_secret
from warehouse.database.pool import Pool
from warehouse.errors import ProjectNotFound
from warehouse.hotlog import batches
from warehouse.tables import EVENTS_TABLE

DEMO = "demo"
ORIGINS = {DEMO: "https://example.com", "forum": "https://forum.example.com", "new-blog": "https://blog.example.com"}
"""Site of each project: one with every feature, one with warnings and a source policy, and a site of yesterday."""
GOALS: dict[str, tuple[goals.Kind, str]] = {
    "Installs": ("path", "/docs/install"),
    "Sign-ups": ("event", "Signup"),
    "Starts": ("path", "/docs/quickstart"),
}
"""Goals of DEMO."""
ROBOTS = sample_views.FOLDER / "robots.txt"
"""The robots.txt of the site of DEMO, in force from _ROBOTS_FROM on. The text before it disallows one page."""
_FIRST_ROBOTS, _ROBOTS_FROM = "User-agent: *\nDisallow: /search\n", date(2026, 9, 18)
_POLICY_FROM = date(2026, 9, 11)
"""Day of the sample from which the project `forum` counts people from beacons, and everything else from its log."""
_DAY_S = 86_400
JOBS = sample_views.FOLDER / "jobs.json"
"""Agent jobs of DEMO, in final states: no coding agent runs for them, and their prompts begin with `Sample:`."""
_CONFIGURATION = Configuration("https://git.example.com/larkspur/website", preset="opencode", model="sample-model")
_SECOND_US, _HOUR_US = 1_000_000, 3_600_000_000
_NO_AGENT_RAN = "This is the log of a sample: no coding agent ran, and the repository does not exist.\n"


class SampleTurn(msgspec.Struct, frozen=True):
    """A turn: its prompt, the lines of its agent, finished steps with their log lines, and why the turn failed."""

    prompt: str
    output: list[str]
    steps: Steps
    texts: list[str]
    reason: str | None = None

    @property
    def finished(self) -> list[tuple[Step, str]]:
        """Return the finished steps in their order, each with its log line."""
        values = (getattr(self.steps, name) for name in self.steps.__struct_fields__)
        return list(zip((each for each in values if isinstance(each, get_args(Step))), self.texts, strict=True))


class SampleJob(msgspec.Struct, frozen=True):
    """A job that was created `hours_ago`; its turns begin an hour apart."""

    hours_ago: int
    turns: list[SampleTurn]
    is_archived: bool = False


def exists(control: Pool, id: str = DEMO) -> bool:
    """Return whether the data folder has a sample project; with DEMO it was filled before."""
    with suppress(ProjectNotFound):
        return bool(projects.find(control, id))
    return False


def create(control: Pool, settings: Settings, now: datetime) -> str:
    """Store the views and create the projects with everything else; return the token of the share link.

    A call that was interrupted before the projects were created can be repeated.
    """
    now_s = int(now.timestamp())
    _store_views(settings, now, store_secret.read(control))
    for id, origin in ORIGINS.items():
        if not exists(control, id):
            projects.create(control, id, (origin, projects.ANY_ORIGIN), now_s)
    from_date = _POLICY_FROM + sample_views.days_moved(now.astimezone(UTC).date())
    source_policies.put(control, "forum", "beacon_people_log_machines", from_date)
    _save_robots(control, now)
    for name, goal in GOALS.items():
        goals.add(control, DEMO, name, *goal)
    _create_keys(control, now_s)
    if not store.has_any(control):
        _create_jobs(control, DEMO, now_s * 1_000_000)
    return share_links.create(control, DEMO, "Sample: the marketing team", now_s)[1]


def _save_robots(control: Pool, now: datetime) -> None:
    moved = sample_views.days_moved(now.astimezone(UTC).date())
    for first, content in ((date(2026, 9, 1), _FIRST_ROBOTS), (_ROBOTS_FROM, ROBOTS.read_text(encoding="utf-8"))):
        texts.save(control, DEMO, content, int(datetime.combine(first + moved, time(), UTC).timestamp()))


def new_key(control: Pool, now_s: int) -> str:
    """Return the token of a new `write` key that expires after a day, and delete the expired keys of earlier starts."""
    keys.delete_of_demo(control, DEMO, now_s - _DAY_S)
    return keys.create(control, DEMO, DEMO, "write", now_s + _DAY_S, now_s)[1]


def _store_views(settings: Settings, now: datetime, secret: bytes) -> None:
    now_us, moved = int(now.timestamp()) * 1_000_000, sample_views.days_moved(now.astimezone(UTC).date())
    with (
        closing(batches.connect(settings.hot_log)) as hot,
        closing(open_salts(settings.database_url, settings.data, is_on=settings.visitors)) as salts,
        TemporaryDirectory() as folder,
    ):
        log = Path(folder) / sample_views.LOG.name
        site = Site(frozenset((str(urlsplit(ORIGINS[DEMO]).hostname),)))
        beacons = sample_views.write_log(log, DEMO, moved, now_us, partial(row, salts_of=salts.of, site=site))
        now_s = now_us // 1_000_000
        sample_views.store(hot, [*beacons, *sample_views.posted(moved, now_us, salts.of)], now_s)
        sample_views.store(hot, [*sample_views.events(beacons)], now_s, EVENTS_TABLE)
        options = Options(sample_views.LOG_FORMAT, ledger_from_us=ledger_from_us(settings, DEMO, secret), site=site)
        import_logs(hot, settings.lake, DEMO, [str(log)], secret, lambda: now_us / 1_000_000, options, salts=salts)


def _create_keys(control: Pool, now_s: int) -> None:
    """Create a valid, an expired and a revoked key. Nobody has their tokens."""
    keys.create(control, DEMO, "Sample: server of the reference", "ingest", None, now_s - 20 * _DAY_S)
    keys.create(control, DEMO, "Sample: report of September", "read", now_s - 2 * _DAY_S, now_s - 30 * _DAY_S)
    old, _ = keys.create(control, DEMO, "Sample: server before the move", "ingest", None, now_s - 29 * _DAY_S)
    keys.revoke(control, old.id, now_s - 20 * _DAY_S)


def _create_jobs(control: Pool, project: str, now_us: int) -> None:
    """Create the sample jobs of a project that has no configuration of agent jobs.

    The configuration that the sample jobs need is deleted afterwards, so that the dashboard starts no job for the
    repository of the sample, which does not exist.
    """
    configuration.store(control, project, _CONFIGURATION)
    for job in msgspec.json.decode(JOBS.read_bytes(), type=list[SampleJob]):
        _create_job(control, project, job, now_us)
    configuration.remove(control, project)


def _create_job(control: Pool, project: str, sample: SampleJob, now_us: int) -> None:
    created_us = now_us - sample.hours_ago * _HOUR_US
    id = None
    for number, turn in enumerate(sample.turns):
        at_us = created_us + number * _HOUR_US
        if id is None:
            id = store.create(control, project, turn.prompt, None, at_us).job.id
        else:
            store.message(control, project, id, turn.prompt, None, at_us)
        _perform(control, turn, at_us)
    if sample.is_archived and id is not None:
        store.archive(control, project, id, created_us + _HOUR_US)


def _perform(control: Pool, turn: SampleTurn, at_us: int) -> None:
    lease = queue.claim(control, "sample", at_us + 2 * _SECOND_US, _HOUR_US)
    assert lease is not None
    for number, (step, text) in enumerate(turn.finished, start=1):
        lease = queue.finish_step(control, lease, step, text, at_us + number * 45 * _SECOND_US)
        if isinstance(step, CheckOutStep):
            log = _NO_AGENT_RAN + "\n".join(turn.output)
            queue.renew(control, lease, at_us + number * 50 * _SECOND_US, _HOUR_US, log)
    pull_request = lease.steps.pull_request
    outcome = Outcome(turn.reason, pull_request.url if pull_request else None)
    queue.finish(control, lease, outcome, at_us + 240 * _SECOND_US)
