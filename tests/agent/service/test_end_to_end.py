"""From a prompt to a pull request, with a real service, git server, sandbox and coding agent."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.agent.forge_doubles.double import ForgeKind
from tests.agent.job_folder import processes, sleeper
from tests.agent.servers.git_server import serving
from tests.agent.servers.model_server import Call, ModelServer, Text
from tests.agent.servers.webhook_receiver import webhook_receiver
from tests.agent.service.site import END_S, REPOSITORY, SECRETS, Site, command, make_site
from tests.agent.tools import require_sandbox
from tests.processes.running import Running
from tests.processes.state import descendants
from tests.processes.waiting import until
from tests.stores import sql
from warehouse.control import database
from warehouse.folder import sqlite_url


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    require_sandbox()
    folder = tmp_path_factory.mktemp("site")
    with make_site(folder) as site:
        site.running = Running(folder / "data", environ={"READERSHIP_JOB_LEASE_S": "3", "HOOK": "s3cret", **SECRETS})
        site.running.start()
        yield site
        assert site.running.stop() == 0


@pytest.fixture
def ready(shared: Site) -> Site:
    """Return a running site whose coding agent writes its prompt to a new file."""
    shared.clear()
    shared.set_up()
    return shared


ONCE = "if [ -e ~/again ]; then {}; else touch ~/again; echo at work; sleep 1000; fi"
"""Coding agent that does not end the first time, and runs the command in braces the second time."""


@pytest.mark.long
def test_prompt_becomes_a_pull_request_and_messages_add_commits_to_it_in_order(ready: Site) -> None:
    id = ready.create("Write a page\nabout retries")
    job = ready.completed(id)
    [pull] = ready.pulls(id)
    assert job["prLink"] == ready.forge.link(pull)
    assert (pull.base, pull.title) == ("main", "Write a page")
    assert "> about retries" in pull.body
    assert ready.pushed(id) == ["First", "Write a page"]
    files = ready.git.read(REPOSITORY, f"readership/{id}")
    assert {content for _, content in files.values()} == {b"A site\n", b"Write a page\nabout retries"}
    entries = [line.split(" ", 1)[1] for line in ready.log(id).splitlines() if not line.startswith("  |")]
    assert [line.split(" ")[2] for line in entries] == "turn: step: step: step: step: step: turn:".split()
    for prompt in ("Two", "Three"):
        ready.message(id, prompt)
    assert ready.completed(id)["prLink"] == job["prLink"]
    assert ready.pushed(id) == ["First", "Write a page", "Two", "Three"]
    assert len(ready.pulls(id)) == 1


@pytest.mark.long
def test_job_without_changes_has_no_pull_request(ready: Site) -> None:
    ready.configure(*command("true"))
    id = ready.create()
    assert ready.completed(id)["prLink"] is None
    assert (ready.pushed(id), ready.forge.pulls) == ([], [])
    assert "no file was changed" in ready.log(id)


@pytest.mark.long
def test_cancelled_job_stops_and_a_follow_up_continues_it(ready: Site) -> None:
    script = "cat > prompt.md; case $(cat prompt.md) in *Two) echo at work; sleep 1000;; esac"
    ready.configure(*command("sh", "-c", script))
    id = ready.create("One")
    link = ready.completed(id)["prLink"]
    ready.message(id, "Two")
    until(lambda: "  | at work" in ready.log(id), END_S)
    assert ready.ask("POST", f"/{id}/cancel").json()["status"] == "failed"
    ready.message(id, "Three")
    assert ready.completed(id)["prLink"] == link
    assert ready.pushed(id) == ["First", "One", "Three"]


@pytest.mark.long
def test_wrong_token_fails_the_job_and_a_missing_one_fails_at_the_push(ready: Site) -> None:
    ready.git.tokens.clear()
    reason = ready.failed(ready.create())
    assert "does not accept the token (401)" in reason
    assert SECRETS["GIT_TOKEN"] not in reason
    ready.git.public = True
    ready.configure("--git-token", "")
    assert "requires a token (401), and the project has no token" in ready.failed(ready.create())


@pytest.mark.long
def test_follow_up_without_changes_opens_the_pull_request_that_failed_before(ready: Site) -> None:
    ready.forge.tokens["git-token"] = "read"
    ready.configure(*command("sh", "-c", "echo done > page.md"))
    id = ready.create("One")
    assert "(403)" in ready.failed(id)
    assert ready.pushed(id) == ["First", "One"]
    ready.forge.tokens["git-token"] = "write"
    ready.message(id, "Try again")
    assert ready.completed(id)["prLink"] == ready.forge.link(ready.pulls(id)[0])


@pytest.mark.long
def test_no_secret_is_in_any_file_of_the_service(ready: Site) -> None:
    ready.configure(*command("sh", "-c", "env; cat > page.md"))
    id = ready.create()
    ready.completed(id)
    assert ready.running.stop() == 0
    files = [*ready.running.data.rglob("*"), ready.running.log]
    content = b"".join(file.read_bytes() for file in files if file.is_file() and not file.is_symlink())
    ready.running.start()
    for secret in SECRETS.values():
        assert secret.encode() not in content


@pytest.mark.long
def test_webhook_gets_a_message_when_a_job_ends(ready: Site) -> None:
    with webhook_receiver(200) as receiver:
        ready.configure("--webhook", receiver.url, "--webhook-secret", "env:HOOK")
        id = ready.create()
        link = ready.completed(id)["prLink"]
        until(lambda: receiver.messages, END_S)
        metrics = f"{ready.running.url}/metrics"
        count = 'readership_webhook_deliveries_total{outcome="delivered"} 1.0'
        until(lambda: count in httpx.get(metrics).text)
    [(_, body)] = receiver.messages
    assert json.loads(body)["data"]["job"]["prLink"] == link


@pytest.mark.long
@pytest.mark.parametrize("kind", ["gitlab", "gitea"])
def test_each_forge_opens_one_pull_request_for_a_job(shared: Site, tmp_path: Path, kind: ForgeKind) -> None:
    with make_site(tmp_path, kind) as other:
        other.running = shared.running
        site = other.of(kind)
        site.set_up()
        id = site.create("One")
        link = site.completed(id)["prLink"]
        site.message(id, "Two")
        assert site.completed(id)["prLink"] == link == site.forge.link(site.pulls(id)[0])
        assert (len(site.pulls(id)), site.pushed(id)) == (1, ["First", "One", "Two"])


@pytest.mark.long
def test_pull_request_that_exists_already_is_used(ready: Site) -> None:
    ready.configure(*command("sh", "-c", "sleep 2; cat > page.md"))
    id = ready.create()
    until(lambda: "checked out" in ready.log(id), END_S)
    existing = ready.forge.add(f"readership/{id}", "main", "By hand")
    assert ready.completed(id)["prLink"] == ready.forge.link(existing)
    assert len(ready.pulls(id)) == 1


@pytest.mark.long
@pytest.mark.parametrize("is_sent_to_all", [False, True], ids=["the service", "each process"])
def test_sigterm_puts_the_turn_back_and_it_runs_after_the_next_start(ready: Site, *, is_sent_to_all: bool) -> None:
    """A service manager sends the signal to all processes of the service at once."""
    ready.configure(*command("sh", "-c", ONCE.format("cat > page.md")))
    id = ready.create()
    until(lambda: "at work" in ready.log(id), END_S)
    assert ready.running.process is not None
    for pid in descendants(ready.running.process.pid) if is_sent_to_all else []:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    assert ready.running.stop() == 0
    assert "did not end within" not in ready.running.log.read_text()
    ready.running.start()
    ready.completed(id)
    assert len(ready.pulls(id)) == 1


@pytest.mark.long
def test_token_of_a_new_repository_host_is_not_sent_to_the_old_host(ready: Site, tmp_path: Path) -> None:
    id = ready.create("One")
    ready.completed(id)
    (tmp_path / "other").mkdir()
    with serving(tmp_path / "other") as other:
        ready.configure("--repository", f"{other.url}/{REPOSITORY}.git", "--git-token", "env:OTHER_TOKEN")
        ready.message(id, "Two")
        assert "its token is not sent to the host of this job's repository" in ready.failed(id)
    assert {token for _, token in ready.git.requests} <= {"git-token", ""}


@pytest.mark.long
def test_deleting_a_project_ends_its_coding_agent_and_removes_the_folder(ready: Site) -> None:
    ready.running.log.write_text("")
    project, seconds = "doomed", sleeper()
    doomed = ready.of(project)
    doomed.set_up(*command("sh", "-c", f"touch page.md; echo at work; sleep {seconds}"))
    id = doomed.create()
    until(lambda: "  | at work" in doomed.log(id), END_S)
    assert processes("sleep", seconds)
    done = doomed.running.run("project", "delete", project, "--yes")
    assert done.returncode == 0, done.stderr
    until(lambda: not processes("sleep", seconds))
    until(lambda: not (doomed.running.data / "jobs" / id).exists())
    assert doomed.ask("GET", f"/{id}").status_code == 401
    assert doomed.ask("POST", json={"prompt": "x"}).status_code == 401
    ready.completed(ready.create())
    assert "Traceback" not in ready.running.log.read_text()


def reset(ready: Site, *steps: str) -> None:
    """Reset the last turn to the state after these steps, as if its worker had died."""
    engine = database.connect(sqlite_url(ready.running.data / "control.sqlite"))
    id, job, stored = sql.rows(engine, "SELECT id, job_id, steps FROM turns ORDER BY id DESC LIMIT 1")[0]
    finished = json.dumps({name: json.loads(stored)[name] for name in steps})
    sql.run(
        engine, "UPDATE turns SET state = 'queued', attempt = 1, steps = :steps WHERE id = :id", steps=finished, id=id
    )
    sql.run(engine, "UPDATE jobs SET status = 'active' WHERE id = :id", id=job)
    engine.close()


@pytest.mark.long
def test_finished_steps_are_not_repeated_by_another_worker(ready: Site) -> None:
    """Let the push not be stored; then close the pull request before the turn continues after it."""
    id = ready.create("One")
    link = ready.completed(id)["prLink"]
    reset(ready, "check out", "run", "commit")
    assert ready.completed(id)["prLink"] == link
    assert ready.pushed(id) == ["First", "One"]
    ready.pulls(id)[0].state = "closed"
    reset(ready, "check out", "run", "commit", "push", "pull request")
    assert ready.completed(id)["prLink"] == link
    assert len(ready.pulls(id)) == 1


@pytest.mark.long
def test_files_of_another_attempt_are_not_used(ready: Site) -> None:
    id = ready.create("One")
    ready.completed(id)
    tree = ready.running.data / "jobs" / id / "tree"
    ready.clear()
    tree.mkdir()
    (tree / "half.md").write_text("half")
    (tree.parent / ".turn").write_text("of another attempt")
    reset(ready, "check out", "run")
    ready.completed(id)
    assert "half.md" not in ready.git.read(REPOSITORY, f"readership/{id}")
    assert ready.pushed(id) == ["First", "One"]


@pytest.mark.installed
def test_real_coding_agent_opens_a_pull_request_and_resumes_its_session(ready: Site, opencode: Path) -> None:
    first = Call("write", {"filePath": "/work/retries.md", "content": "Three times.\n"})
    second = Call("write", {"filePath": "/work/limits.md", "content": "Ten seconds.\n"})
    with ModelServer([first, Text("Wrote it."), second, Text("That too.")], SECRETS["MODEL_KEY"]) as server:
        ready.configure(
            *("--preset", "opencode", "--model", "scripted", "--model-base", server.url),
            *("--model-key", "env:MODEL_KEY", "--readable", str(opencode)),
        )
        id = ready.create("Explain the retries")
        link = ready.completed(id)["prLink"]
        ready.message(id, "And the limits")
        assert ready.completed(id)["prLink"] == link == ready.forge.link(ready.pulls(id)[0])
    files = ready.git.read(REPOSITORY, f"readership/{id}")
    assert {name: content for name, (_, content) in files.items()} == {
        "README.md": b"A site\n",
        "retries.md": b"Three times.\n",
        "limits.md": b"Ten seconds.\n",
    }
    assert ready.pushed(id) == ["First", "Explain the retries", "And the limits"]
    assert len(ready.pulls(id)) == 1
    assert "Explain the retries" in server.prompts[-1], "the follow-up is in the same session"
    assert "opencode has finished: That too." in ready.log(id)
