"""The operations that a step may start, each with its effect on the model."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from ingest.classification.user_agent_cache import UserAgentCache
from ingest.hits.row import AGENT, TRAFFIC, classify_user_agents
from ingest.hotlog import deduplication, ledger_store
from ingest.imports.importer import import_logs
from tests.simulation.model import Import, Key, Log
from tests.simulation.node import SECRET, Node
from tests.simulation.tasks import pause
from tests.warehouse.rollups.writing import write_rollup
from warehouse.hotlog import retention, wal
from warehouse.hotlog.connection import HotConnection
from warehouse.integrity.lake_lock import ROLLUPS, lake_lock
from warehouse.lake import delta_table
from warehouse.maintenance import compact, erase, load, rollups, upkeep
from warehouse.maintenance.erase import Chosen
from warehouse.maintenance.reclassification.reclassify import Rules, reclassify
from warehouse.query import engine
from warehouse.tables import HITS_TABLE

if TYPE_CHECKING:
    from tests.simulation.episode import Episode

RETENTION_DAYS = 12
PROJECTS = ("a", "b", "c")
PATHS = ("/", "/x", "/y/1", "/y/2")
USER_AGENTS = ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "GPTBot/1.3", "SemrushBot/7")
_KNOWN = UserAgentCache()
Begun = tuple[str, Callable[[], object], Callable[[bool], object]]
"""Name of an operation, its call, and the function that is called at its end with whether it is complete."""
Operation = Callable[["Episode", Node, HotConnection], Begun | None]
"""Function that returns an operation of a node over a connection; None if it cannot begin now."""


def ignore(is_done: bool) -> None:
    """Change nothing in the model."""


def key_of(project: str, ts: datetime, path: str, user_agent: str, status: int | None, *, is_event: bool) -> Key:
    """Return by what a hit or an event must be counted."""
    columns = ("", 0, "", *_KNOWN.columns(user_agent))
    is_error = columns[TRAFFIC] != "human" and status is not None and status >= 400
    view = "events" if is_event else "errors" if is_error else "hits"
    return Key(project, ts.date(), path, str(columns[TRAFFIC]), columns[AGENT], view)  # type: ignore[arg-type]


def grow(episode: "Episode", log: Log) -> None:
    """Add lines of the last hour to a log, or of the last two days to a new one."""
    chance, now = episode.chance, episode.now
    at = now - timedelta(minutes=chance.randrange(60) if log.keys else chance.randrange(3000))
    with log.file.open("a") as file:
        for _ in range(chance.choice((1, 3, 8, 40))):
            at = min(now, at + timedelta(seconds=chance.randrange(60)))
            path, agent = f"/{log.file.stem}/{len(log.keys)}", chance.choice(USER_AGENTS)
            status = 404 if agent != USER_AGENTS[0] and chance.random() < 0.2 else 200
            if is_download := status == 200 and agent != USER_AGENTS[2] and chance.random() < 0.2:
                path += ".zip"
            log.keys.append(key_of(log.project, at, path, agent, status, is_event=is_download))
            file.write(f'192.0.2.7 - - [{at:%d/%b/%Y:%H:%M:%S} +0000] "GET {path} HTTP/1.1" {status} 5 "-" "{agent}"\n')


def import_log(episode: "Episode", node: Node, hot: HotConnection) -> Begun | None:
    """Import what was added to a log, or the same lines once more; sometimes from a copy, as after a rotation."""
    chance = episode.chance
    if not episode.logs or chance.random() < 0.2:
        episode.log_number += 1
        episode.logs.append(Log(chance.choice(PROJECTS), episode.folder / f"log{episode.log_number}"))
    log = chance.choice(episode.logs)
    if log.is_busy or log.project in episode.unfinished_projects():
        return None
    if not log.keys or chance.random() < 0.8:
        grow(episode, log)
    file = log.file
    if chance.random() < 0.2:
        file = file.with_suffix(".1")
        file.write_bytes(log.file.read_bytes())
    pending = Import(log, log.keys[log.stored :])
    log.is_busy = True
    episode.model.imports.append(pending)

    def end(is_done: bool) -> None:
        pending.has_ended = True
        if is_done:
            episode.model.store(pending, len(pending.lines))
            episode.model.settle()

    def call() -> None:
        import_logs(hot, node.lake, log.project, [str(file)], SECRET, lambda: episode.clock.now_s)

    return f"import of {file.name} into {log.project}", call, end


def load_hits(episode: "Episode", node: Node, hot: HotConnection) -> Begun:
    return "load", lambda: load.load(hot, node.lake, 0, pause), ignore


def compact_lake(episode: "Episode", node: Node, hot: HotConnection) -> Begun:
    ended = partial(compact.ended, node.now.date())
    choose = episode.chance.choice(
        (compact.tier, ended, *(partial(compact.whole, small_files_max=n) for n in range(3)))
    )
    share, between = engine.Share(node.spill), partial(load.load, hot, node.lake, 0, pause)
    return "compaction", lambda: compact.compact(hot, node.lake, share, 0, choose, between=between), ignore


def vacuum(episode: "Episode", node: Node, hot: HotConnection) -> Begun:
    def call() -> None:
        compact.vacuum(hot, node.lake, 0)
        deduplication.delete_expired(hot, episode.clock.now_s)
        upkeep.vacuum_rollups(hot, node.lake, 0)

    return "vacuum", call, ignore


def delete_loaded(episode: "Episode", node: Node, hot: HotConnection) -> Begun:
    size = retention.RETAINED_BYTES_MAX
    return "deletion of loaded batches", lambda: retention.delete_due(hot, episode.clock.now_s, size), ignore


def write_rollups(episode: "Episode", node: Node, hot: HotConnection) -> Begun:
    """Write the rollups that are due; or one of a month that is not due, which a month of few hits seldom is."""
    is_due, choice = episode.chance.random() < 0.4, episode.chance.random()

    def call() -> None:
        if is_due:
            share, today = engine.Share(node.spill), node.now.date()
            rollups.write_due(hot, node.lake, share, today, 0, settle_s=60, on_point=pause)
            return
        with lake_lock(hot, node.lake, 0, ROLLUPS):
            table = delta_table.open_table(node.lake, HITS_TABLE)
            files = delta_table.list_files(table, HITS_TABLE)
            if months := sorted({file.partition[:7] for file in files}):
                month = months[int(choice * len(months))]
                of_month = [file for file in files if file.partition[:7] == month]
                write_rollup(node.lake, node.database, month, of_month, pause)

    return "rollups", call, ignore


def rebuild(episode: "Episode", node: Node, hot: HotConnection) -> Begun:
    def call() -> None:
        rollups.rebuild(hot, node.lake, engine.Share(node.spill), node.now.date(), 0)

    return "rebuild of rollups", call, ignore


def classify_again(episode: "Episode", node: Node, hot: HotConnection) -> Begun:
    """Rewrite all days by rules with a new name and the same results. Earlier moments are revoked."""
    episode.rulesets += 1
    episode.erasures += 1
    rules = Rules(f"rules {episode.rulesets}", classify_user_agents)

    def call() -> None:
        reclassify(hot, node.lake, engine.Share(node.spill), rules, 0)

    def end(is_done: bool) -> None:
        episode.erasures += 1

    return "reclassification", call, end


@dataclass(frozen=True)
class Deletion:
    """A deletion that was started, and must be repeated until it ends: of a project's hits, or of old days."""

    name: str
    chosen: Chosen | None
    """None: the days before `first`."""
    first: date = date.min

    @property
    def is_project(self) -> bool:
        return self.chosen == Chosen(self.chosen.project) if self.chosen else False

    def has(self, key: Key) -> bool:
        if self.chosen is None:
            return key.day < self.first
        path = self.chosen.path
        return (
            key.project == self.chosen.project
            and (self.chosen.first is None or key.day >= self.chosen.first)
            and (self.chosen.end is None or key.day < self.chosen.end)
            and (path is None or (key.path.startswith(path[:-1]) if path.endswith("*") else key.path == path))
        )


def new_deletion(episode: "Episode", node: Node) -> Deletion:
    chance, project = episode.chance, episode.chance.choice(PROJECTS)
    first = node.now.date() - timedelta(days=RETENTION_DAYS)
    day = node.now.date() - timedelta(days=chance.randrange(4))
    choices: list[Chosen | None] = [
        None,
        Chosen(project),
        Chosen(project, path=chance.choice((*PATHS, "/y/*", "/log1/*"))),
        Chosen(project, first=day),
        Chosen(project, day, day + timedelta(days=1), chance.choice(PATHS)),
    ]
    chosen = chance.choice(choices)
    name = f"deletion before {first}" if chosen is None else f"deletion where {chosen.where}"
    return Deletion(name, chosen, first)


def delete(episode: "Episode", node: Node, hot: HotConnection) -> Begun | None:
    """Delete hits, or repeat a deletion that was killed. Nothing is posted to the project meanwhile."""
    waiting = [each for each in episode.unfinished if each not in episode.running]
    deletion = episode.chance.choice(waiting) if waiting else new_deletion(episode, node)
    busy = [log.project for log in episode.logs if log.is_busy]
    busy += [each.chosen.project for each in episode.running if each.chosen is not None]
    if busy and (deletion.chosen is None or deletion.chosen.project in busy):
        return None
    if deletion not in episode.unfinished:
        episode.unfinished.append(deletion)
        episode.model.begin_deletion(deletion.has)
    episode.running.append(deletion)
    episode.erasures += 1

    def end(is_done: bool) -> None:
        episode.running.remove(deletion)
        episode.erasures += 1
        if is_done:
            episode.unfinished.remove(deletion)
            episode.model.end_deletion(deletion.has)
            if deletion.is_project:
                episode.forget_project(deletion.chosen.project)

    return deletion.name, lambda: erase_chosen(node, hot, deletion), end


def erase_chosen(node: Node, hot: HotConnection, deletion: Deletion) -> None:
    """Delete as `api.cli.deletion` does, or as the retention does."""
    chosen, today = deletion.chosen, node.now.date()
    if chosen is None:
        erase.erase_before(hot, node.lake, today, (today - deletion.first).days, 0, pause)
    else:
        erase.erase_hits(hot, node.lake, engine.Share(node.spill), chosen, 0, pause)
    rollups.write_stale(hot, node.lake, engine.Share(node.spill), today, 0)
    if chosen is not None and deletion.is_project:
        deduplication.delete_project(hot, chosen.project)
        ledger_store.delete_project(hot, chosen.project)
        wal.empty(hot)


OPERATIONS: dict[Operation, int] = {
    load_hits: 30,
    import_log: 14,
    compact_lake: 8,
    vacuum: 4,
    delete_loaded: 4,
    write_rollups: 10,
    rebuild: 3,
    classify_again: 3,
    delete: 8,
}
"""Operations with the weights of their choice."""
