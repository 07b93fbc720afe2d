"""From a prompt to a pull request at a real forge. The tests leave their branches and pull requests there.

READERSHIP_TEST_FORGE=forgejo                                        # a value of --host
READERSHIP_TEST_FORGE_API=http://127.0.0.1:3000/api/v1               # base of its API
READERSHIP_TEST_FORGE_REPOSITORY=http://127.0.0.1:3000/a/pages.git   # with a commit on its branch main
READERSHIP_TEST_FORGE_TOKEN=...                                      # with the rights of docs/agent-jobs.md
.venv/bin/pytest tests/agent/service/test_real_forge.py
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.agent.servers.model_server import Call, ModelServer, Text
from tests.agent.service.real_forge import PullRequest, RealForge
from tests.agent.service.site import SECRETS, WRITE, Client, command
from tests.agent.tools import require_sandbox
from tests.processes.running import Running

NAMED = "READERSHIP_TEST_FORGE"
UNKNOWN = {"UNKNOWN_TOKEN": "0123456789abcdef0123456789abcdef01234567"}

pytestmark = pytest.mark.skipif(NAMED not in os.environ, reason=f"{NAMED} is not set")


@dataclass(kw_only=True)
class Trial(Client):
    """Client of a project at a real forge. `folder` has the branches that are fetched from it."""

    forge: RealForge
    folder: Path

    def commits(self, id: str) -> list[str]:
        return self.forge.commits(f"readership/{id}", self.folder)

    def pulls(self, id: str) -> list[PullRequest]:
        return self.forge.open_pulls(f"readership/{id}")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    require_sandbox()
    running = Running(tmp_path_factory.mktemp("real") / "data", environ={**SECRETS, **UNKNOWN})
    running.start()
    yield running
    assert running.stop() == 0


@pytest.fixture
def trial(running: Running, tmp_path: Path) -> Trial:
    """Return a service whose project is at the forge; its coding agent writes its prompt to a new file."""
    kind, api, repository, token = (os.environ[f"{NAMED}{each}"] for each in ("", "_API", "_REPOSITORY", "_TOKEN"))
    forge = RealForge(kind, api, repository, token)
    trial = Trial(running=running, forge=forge, folder=tmp_path / "fetched")
    trial.configure(
        *("--repository", repository, "--host", kind, "--api-base", ""),
        *("--git-token", f"env:{NAMED}_TOKEN", "--ref", forge.ref, *command(*WRITE)),
    )
    return trial


def test_prompt_becomes_a_pull_request_and_a_follow_up_adds_a_commit(trial: Trial) -> None:
    id = trial.create("Write a page\nabout retries")
    link = trial.completed(id)["prLink"]
    expected = PullRequest(f"readership/{id}", trial.forge.ref, "Write a page", link)
    assert trial.forge.pull(link) == expected
    assert trial.commits(id) == ["Write a page"]
    assert trial.forge.added(expected.branch, trial.folder) == [b"Write a page\nabout retries"]
    trial.message(id, "Write another")
    assert trial.completed(id)["prLink"] == link
    assert trial.commits(id) == ["Write a page", "Write another"]
    assert trial.pulls(id) == [expected]


@pytest.mark.installed
def test_real_coding_agent_opens_a_pull_request_and_continues_it(trial: Trial, opencode: Path) -> None:
    first = Call("write", {"filePath": "/work/retries.md", "content": "Three times.\n"})
    second = Call("write", {"filePath": "/work/limits.md", "content": "Ten seconds.\n"})
    with ModelServer([first, Text("Wrote it."), second, Text("That too.")], SECRETS["MODEL_KEY"]) as server:
        trial.configure(
            *("--preset", "opencode", "--model", "scripted", "--model-base", server.url),
            *("--model-key", "env:MODEL_KEY", "--readable", str(opencode)),
        )
        id = trial.create("Explain the retries")
        link = trial.completed(id)["prLink"]
        trial.message(id, "And the limits")
        assert trial.completed(id)["prLink"] == link == trial.forge.pull(link).link
    assert trial.commits(id) == ["Explain the retries", "And the limits"]
    assert set(trial.forge.added(f"readership/{id}", trial.folder)) == {b"Three times.\n", b"Ten seconds.\n"}
    assert [pull.link for pull in trial.pulls(id)] == [link]


def test_job_without_changes_has_no_branch_and_no_pull_request(trial: Trial) -> None:
    trial.configure(*command("true"))
    id = trial.create()
    assert trial.completed(id)["prLink"] is None
    assert (trial.commits(id), trial.pulls(id)) == ([], [])


def test_wrong_token_fails_the_job_and_a_follow_up_uses_the_right_one(trial: Trial) -> None:
    trial.configure("--git-token", "env:UNKNOWN_TOKEN")
    id = trial.create("One")
    assert "does not accept the token (401)" in trial.failed(id)
    assert UNKNOWN["UNKNOWN_TOKEN"] not in trial.log(id)
    assert (trial.commits(id), trial.pulls(id)) == ([], [])
    trial.configure("--git-token", f"env:{NAMED}_TOKEN")
    trial.message(id, "Two")
    link = trial.completed(id)["prLink"]
    assert [pull.link for pull in trial.pulls(id)] == [link]
    assert trial.commits(id) == ["Two"]


def test_pull_request_that_exists_already_is_used(trial: Trial) -> None:
    trial.configure("--api-base", "http://127.0.0.1:1")
    id = trial.create("One")
    assert "could not be reached" in trial.failed(id)
    assert trial.commits(id) == ["One"]
    existing = trial.forge.open_by_hand(f"readership/{id}")
    trial.configure("--api-base", "")
    trial.message(id, "Two")
    assert trial.completed(id)["prLink"] == existing.link
    assert trial.pulls(id) == [existing]
    assert trial.commits(id) == ["One", "Two"]
