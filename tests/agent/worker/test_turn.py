"""A turn by itself: what its coding agent is told, on whichever machine, of the turns before it."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import sqlalchemy as sa

from agent.errors import TurnFailed, TurnStopped
from agent.git.workspace import discard
from agent.jobs import configuration, queue, store
from agent.jobs.job import Job
from agent.jobs.queue import Outcome
from agent.jobs.tables import ANSWERS
from agent.worker import turn
from agent.worker.turn import TurnContext
from tests.agent.clock import SECOND_US
from tests.agent.site import REPOSITORY, SECRETS, Site, configured, site
from tests.running import PROJECT
from warehouse.control import database
from warehouse.folder import sqlite_url

AGENT = """#!/bin/sh
# Keeps sessions as agents do: in its home, by an id of its own. Notes what it is told, and changes nothing.
[ "$8" = "" ] || grep -qx "$8" "$HOME/sessions" || { echo "no session $8" >&2; exit 1; }
id=${8:-$(cat /proc/sys/kernel/random/uuid)}
echo "$id" >> "$HOME/sessions"
prompt=$(cat)
{ [ "$8" = "" ] && echo anew || echo goes on; echo "$prompt"; } > TOLD.new && mv TOLD.new TOLD
case $prompt in *break) exit 3;; *wait) sleep 1000;; esac
echo "{\\"type\\": \\"step_finish\\", \\"sessionID\\": \\"$id\\", \\"part\\": {\\"reason\\": \\"stop\\"}}"
"""
"""In the place of opencode, whose eighth argument is the session."""


@dataclass
class Turns:
    """One job, whose turns are worked on by one machine or another: each has a folder of its own."""

    engine: sa.Engine
    folder: Path
    job: str = field(init=False)

    def __post_init__(self) -> None:
        self.job = store.create(self.engine, PROJECT, "One", None, 1).job.id

    def take(self, machine: str) -> str:
        """The next turn, stopped if it only waits; returns what its agent was told."""
        told = self.folder / "told"
        told.unlink(missing_ok=True)
        lease = queue.claim(self.engine, machine, _now_us(), 60 * SECOND_US)
        assert lease is not None

        def is_stopped() -> bool:
            return lease.prompt.endswith("wait") and told.exists()

        context = TurnContext(self.engine, self.folder / machine, SECRETS, _now_us, is_stopped, lambda piece: None)
        try:
            queue.finish(self.engine, lease, Outcome(None, turn.perform(lease, context)), _now_us())
        except TurnStopped:
            queue.release(self.engine, lease)
        except TurnFailed as error:
            queue.finish(self.engine, lease, Outcome(str(error)), _now_us())
        return told.read_text()

    def follow_up(self, prompt: str, machine: str) -> str:
        store.message(self.engine, PROJECT, self.job, prompt, None, _now_us())
        return self.take(machine)


def _now_us() -> int:
    return time.time_ns() // 1000


@pytest.fixture
def turns(tmp_path: Path) -> Iterator[Turns]:
    engine = database.connect(sqlite_url(tmp_path / "control.sqlite"))
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "opencode").write_text(AGENT.replace("TOLD", str(tmp_path / "told")))
    (tools / "opencode").chmod(0o755)
    with site(tmp_path) as made:
        configured(engine, made, preset="opencode", model="m", readable=(str(tools),))
        yield Turns(engine, tmp_path)
    engine.dispose()


def test_a_session_goes_on_where_its_home_is_and_is_replayed_elsewhere(turns: Turns) -> None:
    earlier = "anew\nEarlier requests; what they led to is in the work tree:\n\nRequest 1:\nOne\n\n"
    assert turns.take("a") == "anew\nOne\n"
    assert turns.follow_up("Two", "b") == f"{earlier}The request now:\nTwo\n"
    told = turns.follow_up("Three", "a")
    assert told == f"{earlier}Request 2:\nTwo\n\nThe request now:\nThree\n", "its home has a session, of before"
    assert turns.follow_up("Four", "a") == "goes on\nFour\n"
    discard(turns.folder / "a" / turns.job / "home")
    assert turns.follow_up("Five", "a").startswith(f"{earlier}Request 2:")
    assert store.find(turns.engine, PROJECT, turns.job).status == "completed"


def test_a_session_is_told_what_of_it_is_not_in_the_work_tree(turns: Turns) -> None:
    lost = "goes on\nNothing that was done for these requests is in the work tree any more:\n\nRequest 1:\n"
    turns.take("a")
    assert turns.follow_up("break", "a") == "goes on\nbreak\n"
    assert turns.follow_up("Three", "a") == f"{lost}break\n\nThe request now:\nThree\n"
    assert turns.follow_up("wait", "a") == "goes on\nwait\n", "what broke was told before"
    assert turns.take("a") == f"{lost}wait\n\nThe request now:\nwait\n", "it was put back, and is begun again"
    store.cancel(turns.engine, PROJECT, turns.job, _now_us())
    assert turns.follow_up("Five", "a") == f"{lost}wait\n\nThe request now:\nFive\n"


def test_a_home_that_has_no_mark_is_given_one_and_its_session_is_not_gone_on_with(turns: Turns) -> None:
    """As the homes are that were made before there were marks."""
    turns.take("a")
    (turns.folder / "a" / turns.job / ".home").unlink()
    assert turns.follow_up("Two", "a").startswith("anew\nEarlier requests; ")
    assert turns.follow_up("Three", "a") == "goes on\nThree\n"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path) as found:
        yield found


def perform(engine: sa.Engine, folder: Path) -> str | None:
    """The next turn, to its end."""
    lease = queue.claim(engine, "worker", _now_us(), 60 * SECOND_US)
    assert lease is not None
    context = TurnContext(engine, folder, SECRETS, _now_us, lambda: False, lambda piece: None)
    try:
        url = turn.perform(lease, context)
    except TurnFailed as error:
        queue.finish(engine, lease, Outcome(str(error)), _now_us())
        raise
    queue.finish(engine, lease, Outcome(None, url), _now_us())
    return url


def change(engine: sa.Engine, **given: object) -> None:
    with engine.connect() as connection:
        chosen = configuration.load(connection, PROJECT)
    configuration.store(engine, PROJECT, configuration.changed(chosen, given))


def test_a_job_keeps_the_coding_agent_that_it_began_with(made: Site, tmp_path: Path) -> None:
    engine = database.connect(sqlite_url(tmp_path / "control.sqlite"))
    configured(engine, made, "sh", "-c", "echo first >> agents.md")
    id = store.create(engine, PROJECT, "One", None, 1).job.id
    change(engine, command=("sh", "-c", "echo second >> agents.md"))
    perform(engine, tmp_path / "jobs")
    change(engine, preset="opencode", command=(), model="a-model")
    store.message(engine, PROJECT, id, "Two", None, 2)
    perform(engine, tmp_path / "jobs")
    assert made.git.read(REPOSITORY, f"readership/{id}")["agents.md"][1] == b"first\nfirst\n"
    job = store.find(engine, PROJECT, id)
    assert (job.preset, job.command, job.model) == ("command", ("sh", "-c", "echo first >> agents.md"), "command")
    engine.dispose()


def test_a_model_key_is_not_sent_to_the_model_server_of_another_coding_agent(made: Site, tmp_path: Path) -> None:
    """The key that is set now is for Anthropic's server, and the job's agent would ask OpenAI's."""
    engine = database.connect(sqlite_url(tmp_path / "control.sqlite"))
    configured(engine, made, preset="opencode", model="gpt-5", model_key="env:MODEL_KEY")
    store.create(engine, PROJECT, "One", None, 1)
    change(engine, preset="claude", model="claude-sonnet-5")
    with pytest.raises(
        TurnFailed, match="is claude now, and its model key is not sent to the model server of opencode"
    ):
        perform(engine, tmp_path / "jobs")
    engine.dispose()


def test_jobs_of_an_older_database_have_the_coding_agent_that_their_project_has_at_the_upgrade(
    database_url: str, made: Site
) -> None:
    """The database is brought back to schema version 3: without the two columns, and answers without the fields."""
    engine = database.connect(database_url)
    configured(engine, made, "my-agent", "--flag")
    job = store.create(engine, PROJECT, "One", "key", 1).job
    with engine.begin() as connection:
        old = {name: getattr(job, name) for name in Job.__slots__ if name not in ("preset", "command")}
        connection.execute(ANSWERS.update().values(answer=old))
        for column in ("preset", "command"):
            connection.exec_driver_sql(f"ALTER TABLE jobs DROP COLUMN {column}")
        connection.exec_driver_sql("UPDATE schema_version SET version = 3")
    engine.dispose()
    engine = database.connect(database_url)
    assert store.find(engine, PROJECT, job.id) == job
    assert store.create(engine, PROJECT, "One", "key", 2).job == job
    assert job.command == ("my-agent", "--flag")
    engine.dispose()
