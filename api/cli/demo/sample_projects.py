"""The sample projects, with their views, keys, share link, goals, robots.txt and agent jobs."""

from contextlib import closing
from datetime import UTC, date, datetime, time
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from agent.jobs import store
from api.accounts import keys, share_links
from api.cli.demo import sample_jobs, sample_views
from api.cli.log_import.reading import ledger_from_us
from api.dashboard.robots import texts
from api.settings import Settings
from ingest.hits.row import Site
from ingest.imports.importer import Options, import_logs
from ingest.visitors.salts import open_salts
from warehouse.control import goals, projects, source_policies, store_secret
from warehouse.database.pool import Pool
from warehouse.errors import ProjectNotFound
from warehouse.hotlog import batches

DEMO = "demo"
ORIGINS = {DEMO: "https://example.com", "forum": "https://forum.example.com", "new-blog": "https://blog.example.com"}
"""Site of each project: one with every feature, one with warnings and a source policy, and a site of yesterday."""
GOALS = {"Installs": "/docs/install", "Starts": "/docs/quickstart"}
"""Goals of DEMO, with their paths."""
ROBOTS = sample_views.FOLDER / "robots.txt"
"""The robots.txt of the site of DEMO, in force from _ROBOTS_FROM on. The text before it disallows one page."""
_FIRST_ROBOTS, _ROBOTS_FROM = "User-agent: *\nDisallow: /search\n", date(2026, 9, 18)
_POLICY_FROM = date(2026, 9, 11)
"""Day of the sample from which the project `forum` counts people from beacons, and everything else from its log."""
_DAY_S = 86_400


def exist(control: Pool) -> bool:
    """Return whether the demo was filled before."""
    try:
        projects.find(control, DEMO)
    except ProjectNotFound:
        return False
    return True


def create(control: Pool, settings: Settings, now: datetime) -> str:
    """Store the views and create the projects with everything else; return the token of the share link.

    A call that was interrupted before the projects were created can be repeated.
    """
    now_s = int(now.timestamp())
    _store_views(settings, now, store_secret.read(control))
    for id, origin in ORIGINS.items():
        _create_project(control, id, origin, now_s)
    from_date = _POLICY_FROM + sample_views.days_moved(now.astimezone(UTC).date())
    source_policies.put(control, "forum", "beacon_people_log_machines", from_date)
    _save_robots(control, now)
    for name, path in GOALS.items():
        goals.add(control, DEMO, name, "path", path)
    _create_keys(control, now_s)
    if not store.has_any(control):
        sample_jobs.create(control, DEMO, now_s * 1_000_000)
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
        site = Site({str(urlsplit(ORIGINS[DEMO]).hostname)})
        beacons = sample_views.write_log(log, DEMO, moved, now_us, salts.of, site)
        sample_views.store(hot, [*beacons, *sample_views.posted(moved, now_us, salts.of)], now_us // 1_000_000)
        options = Options(ledger_from_us=ledger_from_us(settings, DEMO, secret), site=site)
        import_logs(hot, settings.lake, DEMO, [str(log)], secret, lambda: now_us / 1_000_000, options, salts=salts)


def _create_project(control: Pool, id: str, origin: str, now_s: int) -> None:
    """Create a project, unless the data folder has one with this id."""
    try:
        projects.find(control, id)
    except ProjectNotFound:
        projects.create(control, id, (origin, projects.ANY_ORIGIN), now_s)


def _create_keys(control: Pool, now_s: int) -> None:
    """Create a valid, an expired and a revoked key. Nobody has their tokens."""
    keys.create(control, DEMO, "Sample: server of the reference", "ingest", None, now_s - 20 * _DAY_S)
    keys.create(control, DEMO, "Sample: report of September", "read", now_s - 2 * _DAY_S, now_s - 30 * _DAY_S)
    old, _ = keys.create(control, DEMO, "Sample: server before the move", "ingest", None, now_s - 29 * _DAY_S)
    keys.revoke(control, old.id, now_s - 20 * _DAY_S)
