"""A sequence of steps in a new folder, chosen by the seed, and its trace."""

import hashlib
from collections import deque
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import duckdb
import msgspec
import psycopg
from deltalake.exceptions import DeltaError

from api.cli.move import moving
from api.cli.move.moving import Watch
from api.cli.move.places import Places
from ingest.errors import LogReadElsewhere
from ingest.hits.body import EVENTS, HITS, decode_beacon, parse_post
from ingest.hits.row import row, rows
from ingest.hotlog.deduplication import REMEMBERED_S, TABLES, Post
from ingest.imports import log_stream, prefetch
from ingest.imports.prepared import preparation
from ingest.verification.verifier import Verifier
from tests.simulation import checks, operations, recoveries
from tests.simulation.checks import Remembered
from tests.simulation.machine import Machine
from tests.simulation.model import Fault, Log, Model
from tests.simulation.node import Node
from tests.simulation.operations import OPERATIONS, PATHS, PROJECTS, USER_AGENTS, Deletion, Operation
from tests.simulation.tasks import Task, pause
from warehouse.batch.actions import errors_of
from warehouse.database.postgresql import ServerError
from warehouse.errors import LakeBusy, StagedTooLong
from warehouse.hotlog.connection import server_of
from warehouse.integrity.lake_lock import LAKE
from warehouse.lake import lock
from warehouse.lake.roots import LocalPath

END = 1_000_000
"""Number of steps that no operation takes."""
TRACE = 60
"""Number of steps that a report of a fault shows."""
LONG_S = 1_800.0
"""Time after which a paused process may miss files that a vacuum has removed, in seconds."""
FROZEN_STEPS = 120
TIMES_S = (0.01, 1.0, 30.0, 300.0, 620.0, 620.0, 1_900.0, 4_000.0, 40_000.0, 700_000.0)
"""Times that pass at once, in seconds. The last one is longer than event ids are remembered."""
_VERIFIER = Verifier()
_LOCKED = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objid = %s"


def use_small_limits() -> None:
    """Lower the limits from which few hits take the ways of many."""
    preparation.STAGED_ROWS_MIN = 12
    log_stream.BLOCK_BYTES, log_stream.LAST_LINE_BYTES, prefetch.CHUNK_BLOCKS = 1_200, 400, 2
    LocalPath.checkpoint_commits = 12


class Episode:
    """The nodes, their model, and the chance that chooses each step."""

    def __init__(self, seed: int, machine: Machine, folder: Path, database_urls: list[str]) -> None:
        machine.reset(seed)
        self.seed, self.machine, self.folder, self.clock = seed, machine, folder, machine.clock
        self.chance, self.model, self.count = Random(seed), Model(), 0
        self.trace: deque[str] = deque(maxlen=TRACE)
        self._digest = hashlib.sha256()
        self.logs: list[Log] = []
        self.unfinished: list[Deletion] = []
        self.running: list[Deletion] = []
        self.erasures = self.rulesets = self._event_ids = self._starts = self.log_number = 0
        self._remembered: deque[Remembered] = deque(maxlen=30)
        self._new_urls = database_urls
        self._urls = database_urls if self.chance.random() < 0.5 else []
        self._shared = folder / "node0"
        self.nodes = [self._new_node(number) for number in range(len(self._urls) or 1)]

    def start(self) -> None:
        """Start all nodes."""
        for node in self.nodes:
            self._resume(self._started(node), END)

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self.clock.now_s, UTC)

    @property
    def digest(self) -> str:
        """Return a hash of the whole trace, which is equal for equal seeds."""
        return self._digest.hexdigest()

    def steps(self, count: int) -> None:
        """Take steps until there were `count`, and then check everything at rest."""
        while self.count < count:
            self._step()
        self.rest()

    def note(self, text: str) -> None:
        """Add a step to the trace."""
        self.count += 1
        self.trace.append(f"{self.count} {text}")
        self._digest.update(text.encode())

    # Steps

    def _step(self) -> None:
        chance, tasks = self.chance, self._tasks()
        for task in tasks:
            task.frozen -= 1
        if (runnable := [task for task in tasks if task.frozen <= 0]) and chance.random() < 0.6:
            self._resume(chance.choice(runnable), chance.choice((1, 1, 2, 5, 20, 100)))
            return
        actions: dict[Callable[[], object], float] = {
            self.post: 30,
            self._start: 18,
            self._check: 7,
            self._as_of: 3,
            self._sql: 2,
            self._pass_time: 5,
            self._freeze: 2,
            self._kill: 3,
            self._crash: 1,
            self._whole: 0.3,
            self._rob: 1.0 if self._urls else 0,
            self._move: 0.3 if len(self._new_urls) > len(self._urls) else 0,
        }
        chance.choices(list(actions), list(actions.values()))[0]()

    def _resume(self, task: Task, times: int) -> None:
        for _ in range(times):
            task.resume()
            self.note(f"{task.name}: {'end' if task.has_ended else task.place}")
            if task.has_ended:
                self._end(task)
                return

    def _end(self, task: Task) -> None:
        """Remove a task that has ended. An error that a user could not expect is a fault."""
        for node in self.nodes:
            node.tasks = {slot: each for slot, each in node.tasks.items() if each is not task}
        error = task.error
        if error is not None:
            self.note(f"{task.name} failed: {type(error).__name__}")
            expected: tuple[type[BaseException], ...] = (LakeBusy, LogReadElsewhere)
            if task.is_robbed:
                expected += (ServerError,)
            if self.clock.now_s - task.began_s > LONG_S:
                expected += (StagedTooLong, duckdb.Error, DeltaError, FileNotFoundError)
            if not isinstance(error, Exception) or not all(isinstance(each, expected) for each in errors_of(error)):
                raise Fault(f"{task.name} failed") from error
        task.on_end(error is None and not task.is_dying)
        self.settle()

    def settle(self) -> None:
        """Find out which lines of killed imports are stored."""
        if any(each.has_ended for each in self.model.imports) and (node := self._up()):
            checks.sql(node, self.model)
            self.model.settle()

    def _start(self) -> None:
        node = self._up()
        if node and (free := [slot for slot in node.connections if slot not in node.tasks]):
            slot = self.chance.choice(free)
            operation = self.chance.choices(list(OPERATIONS), list(OPERATIONS.values()))[0]
            if task := self._task(operation, node, slot):
                node.tasks[slot] = task
                self.note(f"{task.name} begins")

    def _task(self, operation: Operation, node: Node, slot: str = "command") -> Task | None:
        begun = operation(self, node, node.connections[slot])
        if begun is None:
            return None
        name, call, on_end = begun
        return Task(f"{name} on {node.name}", call, self.clock.now_s, node.connections[slot], on_end)

    def run(self, operation: Operation) -> None:
        """Run an operation of the first node to its end."""
        task = self._task(operation, self.nodes[0])
        assert task is not None, "nothing else runs"
        self._resume(task, END)

    def post(self) -> None:
        if (node := self._up()) is None:
            return
        projects = [each for each in PROJECTS if each not in self._deleted_projects()]
        posts, expected = [], []
        for _ in range(self.chance.choice((1, 1, 1, 3)) if projects else 0):
            post, accepted = self._new_post(self.chance.choice(projects))
            posts.append(post)
            expected.append(accepted)
        if posts:
            self.clock.advance(0.001)
            receipts = node.post(posts)
            self.note(f"post to {node.name}: {expected}")
            if [receipt.accepted for receipt in receipts] != expected:
                raise Fault(f"{expected} hits were new, and the receipts are {receipts}")

    def _new_post(self, project: str) -> tuple[Post, int]:
        """Return hits or events of a server or a beacon, and the number of new ones, which the model then has."""
        chance, now_us = self.chance, int(self.clock.now_s * 1_000_000)
        is_beacon, kind, sent = chance.random() < 0.4, chance.choice((HITS, HITS, EVENTS)), []
        for _ in range(1 if is_beacon else chance.choice((1, 2, 6))):
            hit: dict[str, object] = {"path": chance.choice(PATHS)}
            if kind is EVENTS:
                hit["name"] = f"Read {hit['path']}"
            if chance.random() < 0.5:
                self._event_ids += chance.random() < 0.6
                hit["eventId"] = f"e{self._event_ids - chance.randrange(4)}"
            if not is_beacon:
                ago = timedelta(minutes=chance.choice((0, 0, 5, 2000)))
                hit |= {"userAgent": chance.choice(USER_AGENTS), "timestamp": (self.now - ago).isoformat()}
                if kind is HITS and chance.random() < 0.15:
                    hit["status"] = 404
            sent.append(hit)
        body = msgspec.json.encode(sent[0] if is_beacon else sent)
        if is_beacon:
            of_beacon = kind.of_beacon(decode_beacon(body, kind), USER_AGENTS[0], self.now)
            new = [row(project, of_beacon, "beacon", now_us, _VERIFIER)]
        else:
            new = rows(project, parse_post(body, False, now_us, kind).hits, now_us, _VERIFIER)
        accepted = sum([self._accept(project, is_beacon, hit) for hit in sent])
        return Post(project, new, [], internal_id=project, spec=TABLES[kind.name]), accepted

    def _accept(self, project: str, is_beacon: bool, hit: dict[str, object]) -> bool:
        """Add a hit to the model; return False for one whose event id was stored in the last seven days."""
        now_s = self.clock.now_s
        if "eventId" in hit:
            id = project, is_beacon, f"{'name' in hit} {hit['eventId']}"
            if id in self.model.seen_s and int(now_s) - int(self.model.seen_s[id]) < REMEMBERED_S:
                return False
            self.model.seen_s[id] = now_s
        at = datetime.fromisoformat(str(hit["timestamp"])) if "timestamp" in hit else self.now
        agent = str(hit.get("userAgent", USER_AGENTS[0]))
        status = hit.get("status")
        key = operations.key_of(project, at, str(hit["path"]), agent, status, is_event="name" in hit)  # type: ignore[arg-type]
        self.model.sure[key] += 1
        return True

    def _pass_time(self) -> None:
        weights = (20, 20, 20, 10, 5, 5, 5, 4, 1, 0.3)
        seconds = self.chance.choices(TIMES_S, weights)[0] + self.chance.randrange(1000) / 1000
        self.machine.advance(seconds, *{node.folder.resolve() for node in self.nodes})
        self.note(f"{seconds} s pass")

    def _freeze(self) -> None:
        if tasks := self._tasks():
            task = self.chance.choice(tasks)
            task.frozen = self.chance.randrange(FROZEN_STEPS)
            self.note(f"{task.name} is paused at {task.place}")

    def _kill(self) -> None:
        if tasks := [task for task in self._tasks() if not task.name.startswith("start")]:
            task = self.chance.choice(tasks)
            self.note(f"{task.name} is killed at {task.place}")
            task.kill()
            self._end(task)

    def _rob(self) -> None:
        """Take the lock of the lake from a paused task, as PostgreSQL and another machine do after a long pause."""
        with closing(psycopg.connect(server_of(self._urls[0]).url, autocommit=True)) as connection:  # type: ignore[union-attr]
            pids = connection.execute(_LOCKED, (LAKE.key,)).fetchall()
            if pids:
                connection.execute("SELECT pg_terminate_backend(%s, 5000)", pids[0])
                (self.nodes[0].lake / lock.FILE).unlink(missing_ok=True)  # two machines do not have one file
                for task in self._tasks():
                    task.is_robbed = True
                self.note("the lock of the lake is taken")

    def _crash(self) -> None:
        """Kill all processes of a node; with its own lake perhaps by a power loss. It starts again from the files."""
        number = self.chance.randrange(len(self.nodes))
        node, is_power_loss = self.nodes[number], not self._urls and self.chance.random() < 0.6
        self.note(f"{node.name} {'loses power' if is_power_loss else 'is killed'}")
        new = self._new_node(number)
        if not self._urls:
            self.machine.copy(node.folder, new.folder, Random(self.chance.random()) if is_power_loss else None)
        tasks = list(node.tasks.values())
        node.stop()
        self.nodes[number] = new
        for task in tasks:
            task.on_end(False)
        new.tasks["start"] = self._started(new)

    def _move(self) -> None:
        """Move the databases of a node to PostgreSQL, perhaps killed and repeated, and start two nodes there."""
        self._end_all()
        node = self.nodes[0]
        node.stop()
        new = replace(node.settings, database_url=self._new_urls[0])
        places = Places(node.settings, new, server_of(new.database_url), None)
        is_moved = False
        while not is_moved:
            task = Task("move", lambda: moving.move(places, Watch(on_point=pause)), self.clock.now_s)
            self._resume(task, self.chance.choice((1, 3, 10, END)))
            is_moved = task.has_ended
            task.kill()
            self.note("the move is complete" if is_moved else f"the move is killed at {task.place}")
        self._shared, self._urls = node.folder, self._new_urls
        self.nodes = [self._new_node(number) for number in range(len(self._urls))]
        self.start()

    # Checks

    def _check(self) -> None:
        if (node := self._up()) is None:
            return
        project = self.chance.choice(PROJECTS)
        asked = checks.query(node, self.chance, project, sorted({key.day for key in self.model.sure}))
        moment, answer = checks.views(node, self.model, asked)
        self.note(f"report of {node.name}: {answer[:2]}")
        self._remembered.append(Remembered(moment, asked, answer, self.clock.now_s, self.erasures))

    def _as_of(self) -> None:
        if self._remembered and (node := self._up()):
            checks.as_of(node, self.chance.choice(self._remembered), self.erasures)
            self.note(f"earlier moment on {node.name}")

    def _sql(self) -> None:
        if node := self._up():
            checks.sql(node, self.model)
            self.note(f"SQL on {node.name}")

    def _whole(self) -> None:
        """Let all operations end, and compare the files; perhaps lose a store then, and recover."""
        self._end_all()
        if not self._urls and self.chance.random() < 0.5:
            recovery = self.chance.choice((recoveries.lose_hot_log, recoveries.break_commit))
            self.note(f"recovery: {recovery.__name__}")
            recovery(self)
            self._end_all()

    def _end_all(self) -> None:
        while tasks := self._tasks():
            self._resume(tasks[0], END)
        node = self.nodes[0]
        self.run(operations.load_hits)
        checks.whole(node, self.model)
        self.note("the whole is checked")

    def rest(self) -> None:
        """End all work, and check that every file is in use or removed."""
        self._end_all()
        while self.unfinished:
            self.run(operations.delete)
        for _ in range(2):
            self.machine.advance(3 * 3600, *{each.folder.resolve() for each in self.nodes})
            self.run(operations.vacuum)
        self._end_all()
        checks.no_orphans(self.nodes[0])
        for each in self.nodes:
            checks.sql(each, self.model)
            each.stop()

    # The state

    def _tasks(self) -> list[Task]:
        return [task for node in self.nodes for task in node.tasks.values()]

    def _up(self) -> Node | None:
        up = [node for node in self.nodes if node.is_up]
        return self.chance.choice(up) if up else None

    def _deleted_projects(self) -> set[str]:
        return {each.chosen.project for each in self.unfinished if each.chosen is not None}

    def unfinished_projects(self) -> set[str]:
        """Return the projects into which nothing may be imported."""
        return set(PROJECTS) if any(each.chosen is None for each in self.unfinished) else self._deleted_projects()

    def forget_event_ids(self) -> None:
        self.model.seen_s.clear()
        self._event_ids += 10

    def restart(self) -> None:
        """Start the first node again, in the same folder."""
        old = self.nodes[0]
        self.nodes[0] = Node(old.name, old.folder, old.settings.database_url, self.machine)
        self._resume(self._started(self.nodes[0]), END)

    def forget_project(self, project: str) -> None:
        """Forget what a deletion of a whole project has forgotten: event ids, and which lines were read."""
        self.model.seen_s = {id: at for id, at in self.model.seen_s.items() if id[0] != project}
        for log in self.logs:
            if log.project == project:
                log.stored = 0

    def _new_node(self, number: int) -> Node:
        self._starts += 1
        name = (f"node{number}" if number else self._shared.name) if self._urls else f"start{self._starts}"
        folder = self.folder / name
        folder.mkdir(0o700, exist_ok=True)
        if number and not (folder / "lake").exists():
            (folder / "lake").symlink_to(self._shared / "lake")
        return Node(
            f"node{number}", folder, self._urls[number] if self._urls else f"sqlite:///{folder}/c.sqlite", self.machine
        )

    def _started(self, node: Node) -> Task:
        return Task(f"start of {node.name}", node.start, self.clock.now_s)
