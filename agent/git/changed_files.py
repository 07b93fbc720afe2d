"""Changes that no turn commits: too many or too large files, and files that configure CI.

A forge may run CI as soon as its configuration is pushed, before anybody has read it.
"""

import os
import re
from pathlib import Path

from agent.errors import TurnFailed
from agent.git.commands import Git

FILE_BYTES_MAX = 100 * 1024 * 1024
"""Maximum size of a committed file, in bytes; GitHub's limit: https://docs.github.com/en/repositories/working-with-files/managing-large-files"""
CHANGED_MAX = 100_000
"""Maximum number of changed files in one commit; git needs memory and time for each file."""
CHANGED_NAMES_BYTES_MAX = 32 * 1024 * 1024
"""Maximum total size of the names of the changed files in one commit, in bytes."""
CI_FILES = (
    *(".github/workflows", ".github/actions", ".gitlab-ci*", ".gitlab/ci", ".gitlab/agents"),
    *(".gitea", ".forgejo", ".woodpecker*", ".circleci", ".buildkite", "Jenkinsfile*", "*.jenkinsfile", ".jenkins"),
    *("azure-pipelines*.y*ml", ".azure-pipelines", ".azuredevops", "bitbucket-pipelines.y*ml", ".travis.y*ml"),
    *(".drone.*", ".cirrus.*", ".appveyor.y*ml", "appveyor.y*ml", ".semaphore", "wercker.yml", ".teamcity", ".tekton"),
    *("buildspec*.y*ml", "cloudbuild.y*ml", "cloudbuild.json", "bitrise.yml", "codemagic.yaml", ".harness"),
    *(".build.yml", ".builds", ".zuul.yaml", "zuul.yaml", ".zuul.d", "zuul.d", ".fmf", "ci.fmf", ".packit.yaml"),
)
"""Files and folders that configure CI, in any folder and in any case; * is any part of a name."""
_PATTERN = "|".join(re.escape(name).replace(r"\*", "[^/]*") for name in CI_FILES)
_CI_PATH = re.compile(rf"(?:^|/)(?:(?:{_PATTERN})(?:/|$)|\.git(?:hub|lab)$)", re.IGNORECASE)
SYMLINK = "120000"


def refuse_large(git: Git, tree: Path) -> None:
    """Raise TurnFailed for too large or too many changes: a sparse file costs the agent nothing, but git hours."""
    count = size = 0

    def check(name: bytes) -> None:
        nonlocal count, size
        count, size = count + 1, size + len(name)
        if count > CHANGED_MAX or size > CHANGED_NAMES_BYTES_MAX:
            raise TurnFailed(
                f"the agent changed more than {CHANGED_MAX} files, or files whose names have more than "
                f"{CHANGED_NAMES_BYTES_MAX // 1024**2} MiB: too many to commit; is a folder missing in .gitignore?"
            )
        try:
            file_size = (tree / os.fsdecode(name)).lstat().st_size
        except OSError:
            return  # deleted, or its folder was replaced by a file: `git add` treats both as a deletion
        if file_size > FILE_BYTES_MAX:
            raise TurnFailed(
                f"{os.fsdecode(name)!r} in the work tree has {file_size / 1024**2:.0f} MiB: "
                f"files over {FILE_BYTES_MAX // 1024**2} MiB are not committed"
            )

    git.stream_names(check, "ls-files", "-z", "--others", "--modified", "--exclude-standard", "--deduplicate")


def refuse_ci(git: Git, tree: Path, new: str) -> None:
    """Raise TurnFailed if a change from HEAD to the git tree `new`, whose files are in `tree`, configures CI."""
    root, targets = tree.resolve(), set[str]()

    def add_link(entry: bytes) -> None:
        """Add the target within the work tree of a symbolic link that configures CI."""
        status, _, name = os.fsdecode(entry).partition("\t")
        if status.startswith(SYMLINK) and _CI_PATH.search(name):
            target = Path(os.path.realpath(tree / name))
            if target.is_relative_to(root) and target != root:
                targets.add(str(target.relative_to(root)))

    def check(changed: bytes) -> None:
        name = os.fsdecode(changed)
        if _CI_PATH.search(name) or any(f"{name}/".startswith(f"{target}/") for target in targets):
            raise TurnFailed(
                f"the agent changed {name!r}, which configures CI and could run at the push: ask for a change "
                "without it, or allow it with `readership project agent PROJECT --allow-ci`"
            )

    git.stream_names(add_link, "ls-files", "-z", "--stage")
    git.stream_names(check, "diff-tree", "-r", "-z", "--no-renames", "--name-only", "HEAD", new)
