"""Files that configure CI: a forge may run them as soon as they are pushed, before anybody has read them."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agent.errors import TurnFailed
from agent.git.commands import Git

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


def refuse(git: Git, tree: Path, new: str) -> None:
    """Check the changes from HEAD to the git tree `new`, whose files are in the folder `tree` and in the index.

    Raises:
        TurnFailed: a file that configures CI was added, changed, moved or deleted.
    """
    links = _Names(tree)
    git.stream_local(links.add_links, "ls-files", "-z", "--stage")
    changes = _Names(tree, links.targets)
    git.stream_local(changes.check, "diff-tree", "-r", "-z", "--no-renames", "--name-only", "HEAD", new)


@dataclass(slots=True)
class _Names:
    """Checker of NUL-separated names, chunk by chunk. `targets` are what symbolic links at CI paths point to."""

    tree: Path
    targets: set[str] = field(default_factory=set)
    _incomplete: bytes = b""

    def add_links(self, chunk: bytes) -> None:
        """Add the targets within the work tree of symbolic links that configure CI."""
        for entry in self._names(chunk):
            status, _, name = entry.partition("\t")
            if status.startswith(SYMLINK) and _CI_PATH.search(name):
                root, target = self.tree.resolve(), Path(os.path.realpath(self.tree / name))
                if target.is_relative_to(root) and target != root:
                    self.targets.add(str(target.relative_to(root)))

    def check(self, chunk: bytes) -> None:
        """Raise TurnFailed if a name in the chunk configures CI."""
        for name in self._names(chunk):
            if _CI_PATH.search(name) or any(f"{name}/".startswith(f"{target}/") for target in self.targets):
                raise TurnFailed(
                    f"the agent changed {name!r}, which configures CI and could run at the push: ask for a change "
                    "without it, or allow it with `readership project agent PROJECT --allow-ci`"
                )

    def _names(self, chunk: bytes) -> Iterator[str]:
        *names, self._incomplete = (self._incomplete + chunk).split(b"\0")
        return map(os.fsdecode, names)
