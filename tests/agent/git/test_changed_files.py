"""Commits that are refused: too many or too large files, and the configuration of CI, in a real repository."""

from pathlib import Path

import pytest

from agent.errors import TurnFailed
from agent.git import changed_files
from agent.git.changed_files import FILE_BYTES_MAX
from tests.agent.git_job import BRANCH, Job, job_of
from tests.agent.servers.git_server import LINK, GitServer

SITE = {
    "README.md": b"# Site\n",
    ".github/workflows/test.yml": b"on: push\n",
    ".github/CODEOWNERS": b"* @owner\n",
    ".gitlab-ci.yml": (LINK, b"ci/gitlab.yml"),
    ".circleci": (LINK, b"ci/circle"),
    "ci/gitlab.yml": b"test: {}\n",
    "ci/circle/config.yml": b"version: 2\n",
    "ci/notes.md": b"Notes.\n",
}
REFUSED = r"the agent changed {}, which configures CI and could run at the push: .* --allow-ci`"


@pytest.fixture
def job(server: GitServer, tmp_path: Path) -> Job:
    checked_out = job_of(tmp_path / "job", server.create("team/site", SITE))
    checked_out.check_out()
    return checked_out


CI_FILES = (
    *(".github/workflows/test.yml", ".github/workflows/new/deep.yml", ".github/actions/a/action.yml"),
    *(".GitHub/Workflows/x.yml", "docs/.github/workflows/x.yml", ".gitlab/ci/x.yml", ".gitlab-ci.old.yaml"),
    *(".gitea/workflows/x.yml", ".forgejo/workflows/x.yml", ".woodpecker.yml", ".woodpecker/x.yml"),
    *("Jenkinsfile", "sub/jenkinsfile.groovy", "azure-pipelines.yml", ".travis.yml", ".drone.star", ".buildkite/x"),
    *("bitbucket-pipelines.yml", ".cirrus.star", "appveyor.yml", ".teamcity/settings.kts", ".builds/x.yml"),
)


@pytest.mark.long
def test_changed_ci_configuration_is_refused(job: Job) -> None:
    (job.tree / "README.md").write_text("honest")
    for name in CI_FILES:
        file = job.tree / name
        before = file.read_bytes() if file.exists() else None
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("on: push to any branch")
        with pytest.raises(TurnFailed, match=REFUSED.format(repr(name))):
            job.commit()
        file.unlink()
        if before:
            file.write_bytes(before)
    assert job.commit(), "no other file is refused"


@pytest.mark.long
def test_change_behind_a_symbolic_link_is_refused(job: Job) -> None:
    for name in ("ci/gitlab.yml", "ci/circle/new.yml"):
        before = job.check_out()
        (job.tree / name).write_text("evil")
        with pytest.raises(TurnFailed, match=REFUSED.format(repr(name))):
            job.commit()
        assert before.follows_up is False


@pytest.mark.long
def test_folder_replaced_by_a_symbolic_link_is_refused(job: Job) -> None:
    """Replace a folder on the way to the target of a link, and a folder of CI configuration itself."""
    (job.tree / "ci").rename(job.tree / "old")
    (job.tree / "other").mkdir()
    (job.tree / "other/gitlab.yml").write_text("evil")
    (job.tree / "ci").symlink_to("other")
    with pytest.raises(TurnFailed, match=REFUSED.format("'other/gitlab.yml'")):
        job.commit()
    job.check_out()
    (job.tree / ".forgejo").symlink_to("src")
    with pytest.raises(TurnFailed, match=REFUSED.format("'.forgejo'")):
        job.commit()
    job.check_out()
    (job.tree / "github/workflows").mkdir(parents=True)
    (job.tree / ".github/workflows/test.yml").unlink()
    (job.tree / ".github/workflows").rmdir()
    (job.tree / ".github/CODEOWNERS").unlink()
    (job.tree / ".github").rmdir()
    (job.tree / ".github").symlink_to("github")
    with pytest.raises(TurnFailed, match=REFUSED.format("'.github'")):
        job.commit()


@pytest.mark.long
def test_deleted_and_moved_ci_configuration_is_refused(job: Job) -> None:
    for source, target in ((".github/workflows/test.yml", "test.yml"), ("new.yml", ".github/workflows/test.yml")):
        (job.tree / "new.yml").write_text("evil")
        (job.tree / source).rename(job.tree / target)
        with pytest.raises(TurnFailed, match=REFUSED.format("'.github/workflows/test.yml'")):
            job.commit()
        job.check_out()


def sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


def test_too_large_file_is_refused_under_any_name(job: Job) -> None:
    sparse(job.tree / "caf\udce9", FILE_BYTES_MAX + 1)
    with pytest.raises(TurnFailed, match="in the work tree has 100 MiB: files over 100 MiB are not committed"):
        job.commit()


def test_number_of_changes_and_the_size_of_their_names_are_limited(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        (job.tree / f"{number}").touch()
    (job.tree / "ci/notes.md").unlink()
    for limit, most in (("CHANGED_MAX", 3), ("CHANGED_NAMES_BYTES_MAX", 13)):
        with monkeypatch.context() as patch:
            patch.setattr(changed_files, limit, most)
            with pytest.raises(TurnFailed, match="too many to commit"):
                job.commit()
    monkeypatch.setattr(changed_files, "CHANGED_MAX", 4)
    monkeypatch.setattr(changed_files, "CHANGED_NAMES_BYTES_MAX", 14)
    assert job.commit()


def test_file_with_a_similar_name_is_committed(job: Job, server: GitServer) -> None:
    names = ("ci/notes.md", ".github/CODEOWNERS", ".github/dependabot.md", "docs/workflows/x.yml", "gitlab-ci.md")
    for name in names:
        (job.tree / name).parent.mkdir(parents=True, exist_ok=True)
        (job.tree / name).write_text("new")
    job.send()
    assert {server.read("team/site", BRANCH)[name][1] for name in names} == {b"new"}


def test_owner_can_allow_changes_of_ci_configuration(job: Job, server: GitServer) -> None:
    (job.tree / ".github/workflows/test.yml").write_text("on: pull_request")
    commit_id = job.commit(allow_ci=True)
    assert commit_id
    job.push(commit_id)
    assert server.read("team/site", BRANCH)[".github/workflows/test.yml"][1] == b"on: pull_request"
