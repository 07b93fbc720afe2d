"""Turn of a job: sessions and histories of the coding agent on one or two machines, and upgrades of old jobs."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agent.errors import TurnFailed, TurnStopped
from agent.git.workspace import discard
from agent.jobs import configuration, queue, store
from agent.jobs.job import Job
from agent.jobs.queue import Outcome
from agent.worker import turn
from agent.worker.job_folders import IDLE_BYTES_MAX
from agent.worker.turn import TurnContext
from api.accounts import share_links
from tests.agent.clock import SECOND_US
from tests.agent.service.site import REPOSITORY, SECRETS, Site, make_site, store_configuration
from tests.agent.tools import require_sandbox
from tests.processes.running import PROJECT
from tests.stores import sql
from warehouse.control import database
from warehouse.database.pool import Pool
from warehouse.folder import sqlite_url

AGENT = """#!/bin/sh
# Stores the ids of its sessions in its home folder, as coding agents do. Writes its prompt to a file.
[ "$8" = "" ] || grep -qx "$8" "$HOME/sessions" || { echo "no session $8" >&2; exit 1; }
id=${8:-$(cat /proc/sys/kernel/random/uuid)}
echo "$id" >> "$HOME/sessions"
prompt=$(cat)
{ [ "$8" = "" ] && echo new session || echo resumed; echo "$prompt"; } > PROMPT.new && mv PROMPT.new PROMPT
case $prompt in *break) exit 3;; *wait) sleep 1000;; esac
echo "{\\"type\\": \\"step_finish\\", \\"sessionID\\": \\"$id\\", \\"part\\": {\\"reason\\": \\"stop\\"}}"
"""
"""Script in place of opencode, whose eighth argument is the session."""


@dataclass
class Turns:
    """One job whose turns run on several machines; each machine has a folder."""

    engine: Pool
    folder: Path
    job: str = field(init=False)
    idle_bytes_max: int = IDLE_BYTES_MAX

    def __post_init__(self) -> None:
        self.job = store.create(self.engine, PROJECT, "One", None, 1).job.id

    def run(self, machine: str) -> str:
        """Run the next turn and return the prompt of its coding agent; stop the turn if the prompt ends with `wait`."""
        prompt_file = self.folder / "prompt"
        prompt_file.unlink(missing_ok=True)
        lease = queue.claim(self.engine, machine, _now_us(), 60 * SECOND_US)
        assert lease is not None

        def is_stopped() -> bool:
            return lease.prompt.endswith("wait") and prompt_file.exists()

        folder, limit = self.folder / machine, self.idle_bytes_max
        context = TurnContext(self.engine, folder, SECRETS, _now_us, is_stopped, lambda piece: None, limit)
        try:
            queue.finish(self.engine, lease, Outcome(None, turn.perform(lease, context)), _now_us())
        except TurnStopped:
            queue.release(self.engine, lease)
            return prompt_file.read_text()
        except TurnFailed as error:
            queue.finish(self.engine, lease, Outcome(str(error)), _now_us())
        assert {each.name for each in (folder / self.job).iterdir()} == {".lock", ".home", "home"}, "its agent's home"
        return prompt_file.read_text()

    def follow_up(self, prompt: str, machine: str) -> str:
        store.message(self.engine, PROJECT, self.job, prompt, None, _now_us())
        return self.run(machine)


def _now_us() -> int:
    return time.time_ns() // 1000


@pytest.fixture
def turns(tmp_path: Path) -> Iterator[Turns]:
    engine = database.connect(sqlite_url(tmp_path / "control.sqlite"))
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "opencode").write_text(AGENT.replace("PROMPT", str(tmp_path / "prompt")))
    (tools / "opencode").chmod(0o755)
    with make_site(tmp_path) as site:
        store_configuration(engine, site, preset="opencode", model="m", readable=(str(tools),))
        yield Turns(engine, tmp_path)
    engine.close()


@pytest.mark.long
def test_session_is_resumed_on_its_machine_and_the_history_is_sent_on_another(turns: Turns) -> None:
    earlier = "new session\nEarlier requests, whose changes are in the work tree:\n\nRequest 1:\nOne\n\n"
    assert turns.run("a") == "new session\nOne\n"
    assert turns.follow_up("Two", "b") == f"{earlier}The request now:\nTwo\n"
    prompt = turns.follow_up("Three", "a")
    assert prompt == f"{earlier}Request 2:\nTwo\n\nThe request now:\nThree\n", "the stored session is older than Two"
    assert turns.follow_up("Four", "a") == "resumed\nFour\n"
    discard(turns.folder / "a" / turns.job / "home")
    assert turns.follow_up("Five", "a").startswith(f"{earlier}Request 2:")
    assert store.find(turns.engine, PROJECT, turns.job).status == "completed"


@pytest.mark.long
def test_resumed_session_gets_the_prompts_whose_changes_are_not_in_the_work_tree(turns: Turns) -> None:
    lost = "resumed\nRequests whose changes are no longer in the work tree:\n\nRequest 1:\n"
    turns.run("a")
    assert turns.follow_up("break", "a") == "resumed\nbreak\n"
    assert turns.follow_up("Three", "a") == f"{lost}break\n\nThe request now:\nThree\n"
    assert turns.follow_up("wait", "a") == "resumed\nwait\n", "the failed prompt was sent once already"
    assert turns.run("a") == f"{lost}wait\n\nThe request now:\nwait\n", "the stopped turn is repeated"
    store.cancel(turns.engine, PROJECT, turns.job, _now_us())
    assert turns.follow_up("Five", "a") == f"{lost}wait\n\nThe request now:\nFive\n"
    failed = "(This request failed; none of its changes are in the work tree.)\n"
    first_three = f"Request 1:\nOne\n\nRequest 2:\n{failed}break\n\nRequest 3:\nThree\n\n"
    assert first_three in turns.follow_up("Six", "b"), "a new session on another machine"


@pytest.mark.long
def test_job_whose_home_was_removed_to_make_room_gets_its_earlier_prompts(turns: Turns) -> None:
    turns.run("a")
    first, turns.idle_bytes_max = turns.job, 0
    turns.job = store.create(turns.engine, PROJECT, "Another job", None, _now_us()).job.id
    assert turns.run("a") == "new session\nAnother job\n"
    assert turns.follow_up("Two", "a") == "resumed\nTwo\n", "the turn does not remove the home of its own job"
    turns.job = first
    assert turns.follow_up("Three", "a").startswith("new session\nEarlier requests, ")


@pytest.mark.long
def test_session_in_a_home_without_a_mark_is_not_resumed(turns: Turns) -> None:
    """Remove the mark: the homes that early versions created have none."""
    turns.run("a")
    (turns.folder / "a" / turns.job / ".home").unlink()
    assert turns.follow_up("Two", "a").startswith("new session\nEarlier requests, ")
    assert turns.follow_up("Three", "a") == "resumed\nThree\n"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with make_site(tmp_path) as site:
        yield site


def perform(engine: Pool, folder: Path) -> str | None:
    """Run the next turn, and return the URL of its pull request."""
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


def change(engine: Pool, **settings: object) -> None:
    with engine.connect() as connection:
        config = configuration.load(connection, PROJECT)
    configuration.store(engine, PROJECT, configuration.changed(config, settings))


@pytest.mark.long
def test_job_continues_with_the_coding_agent_and_repository_that_it_started_with(site: Site, tmp_path: Path) -> None:
    engine = database.connect(sqlite_url(tmp_path / "control.sqlite"))
    first = ("sh", "-c", "echo first ${MODEL_SERVER:+with a model server} >> agents.md")
    store_configuration(engine, site, *first, model_base="http://127.0.0.1:9/v1")
    id = store.create(engine, PROJECT, "One", None, 1).job.id
    change(engine, command=("sh", "-c", "echo second >> agents.md"))
    perform(engine, tmp_path / "jobs")
    change(engine, preset="opencode", command=(), model="a-model", repository=f"{site.git.url}/another.git")
    store.message(engine, PROJECT, id, "Two", None, 2)
    perform(engine, tmp_path / "jobs")
    assert site.git.read(REPOSITORY, f"readership/{id}")["agents.md"][1] == b"first with a model server\n" * 2
    job = store.find(engine, PROJECT, id)
    assert (job.preset, job.command, job.model) == ("command", first, "command")
    engine.close()


def test_model_key_is_not_sent_to_the_model_server_of_another_coding_agent(site: Site, tmp_path: Path) -> None:
    """Change the project to Claude Code, whose key is for Anthropic's server; the job's coding agent uses OpenAI's."""
    engine = database.connect(sqlite_url(tmp_path / "control.sqlite"))
    store_configuration(engine, site, preset="opencode", model="gpt-5", model_key="env:MODEL_KEY")
    store.create(engine, PROJECT, "One", None, 1)
    change(engine, preset="claude", model="claude-sonnet-5", model_key="env:MODEL_KEY")
    with pytest.raises(
        TurnFailed, match="is now claude, and its model key is not sent to the model server of opencode"
    ):
        perform(engine, tmp_path / "jobs")
    engine.close()


@pytest.mark.long
def test_turn_that_changes_ci_configuration_fails_before_its_push_unless_allowed(site: Site, tmp_path: Path) -> None:
    engine = database.connect(sqlite_url(tmp_path / "control.sqlite"))
    store_configuration(engine, site, "sh", "-c", "mkdir -p .forgejo && date +%N > .forgejo/x.yml")
    id = store.create(engine, PROJECT, "One", None, 1).job.id
    with pytest.raises(TurnFailed, match="the agent changed '.forgejo/x.yml', which configures CI"):
        perform(engine, tmp_path / "jobs")
    assert site.git.branches(REPOSITORY) == ["main"]
    change(engine, allow_ci=True)
    store.message(engine, PROJECT, id, "Two", None, 2)
    assert perform(engine, tmp_path / "jobs")
    assert ".forgejo/x.yml" in site.git.read(REPOSITORY, f"readership/{id}")
    engine.close()


def test_secret_that_became_visible_in_the_sandbox_fails_the_turn(site: Site, tmp_path: Path) -> None:
    engine = database.connect(sqlite_url(tmp_path / "control.sqlite"))
    (tmp_path / "secrets").symlink_to("/srv")
    store_configuration(engine, site, "true", is_sandboxed=True, model_key=f"file:{tmp_path}/secrets/key")
    store.create(engine, PROJECT, "One", None, 1)
    (tmp_path / "secrets").unlink()
    (tmp_path / "secrets").symlink_to("/usr/share")
    with pytest.raises(TurnFailed, match="the coding agent could read the file of model_key: move it"):
        perform(engine, tmp_path / "jobs")
    engine.close()


@pytest.mark.long
@pytest.mark.parametrize("publish_prompts", [True, False])
def test_prompts_are_in_the_pull_request_and_commits_only_if_they_are_published(
    site: Site, tmp_path: Path, *, publish_prompts: bool
) -> None:
    engine = database.connect(sqlite_url(tmp_path / "control.sqlite"))
    store_configuration(engine, site, "sh", "-c", "date +%N > new.md", publish_prompts=publish_prompts)
    id = store.create(engine, PROJECT, "Secret plan\nwith a detail", None, 1).job.id
    perform(engine, tmp_path / "jobs")
    store.message(engine, PROJECT, id, "Another secret", None, 2)
    perform(engine, tmp_path / "jobs")
    pull, commits = site.pulls(id)[0], site.pushed(id)
    engine.close()
    created = f"Created by a coding agent in the Readership job {id}."
    if publish_prompts:
        assert (pull.title, pull.body) == ("Secret plan", f"> Secret plan\n> with a detail\n\n{created}")
        assert commits[1:] == ["Secret plan", "Another secret"]
    else:
        assert (pull.title, pull.body) == (f"Readership job {id}", created)
        assert commits[1:] == ["Change what the prompt asked for"] * 2


@pytest.mark.long
def test_unreadable_home_does_not_fail_the_next_turn(site: Site, tmp_path: Path) -> None:
    require_sandbox()
    engine = database.connect(sqlite_url(tmp_path / "control.sqlite"))
    script = "mkdir -p ~/a && date +%N > new.md && touch ~/$(cat new.md) ~/a/x && chmod 000 ~/a ~"
    store_configuration(engine, site, "sh", "-c", script, is_sandboxed=True)
    id = store.create(engine, PROJECT, "One", None, 1).job.id
    perform(engine, tmp_path / "jobs")
    store.message(engine, PROJECT, id, "Two", None, 2)
    perform(engine, tmp_path / "jobs")
    assert len(list((tmp_path / "jobs" / id / "home").iterdir())) == 3, "the files of both turns"
    engine.close()


def test_upgraded_jobs_get_the_current_coding_agent_of_their_project(database_url: str, site: Site) -> None:
    """Downgrade the database to schema version 3, whose jobs and responses have no coding agent, and keys no start."""
    engine = database.connect(database_url)
    assert share_links.list_all(engine, PROJECT) == []  # the module of the table that version 3 had without its pages
    store_configuration(engine, site, "my-agent", "--flag")
    job = store.create(engine, PROJECT, "One", "key", 1).job
    with engine.transaction() as connection:
        old = {name: getattr(job, name) for name in Job.__slots__ if name not in ("preset", "command")}
        sql.execute(connection, "UPDATE job_answers SET answer = :answer", answer=json.dumps(old))
        for table, column in (("jobs", "preset"), ("jobs", "command"), ("keys", "start"), ("share_links", "pages")):
            connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        connection.execute("UPDATE schema_version SET version = 3")
    engine.close()
    engine = database.connect(database_url)
    assert store.find(engine, PROJECT, job.id) == job
    assert store.create(engine, PROJECT, "One", "key", 2).job == job
    assert job.command == ("my-agent", "--flag")
    engine.close()
