"""Finished steps of a turn and their results, as the column `steps` of the table of turns stores them."""

import msgspec


class CheckOutStep(msgspec.Struct, frozen=True):
    """Check-out of the work tree at `commit`.

    `follows_up`: the commit is from the job's own branch. `mark` is the random text in the file `.turn` of the job's
    folder; it proves that the files in the folder are those of this attempt.
    """

    commit: str
    follows_up: bool
    mark: str


class RunStep(msgspec.Struct, frozen=True):
    """Run of the coding agent. `session` identifies its session, which a later turn can resume."""

    session: str | None


class CommitStep(msgspec.Struct, frozen=True):
    """Commit of the changes, with the id `commit`; None if no file was changed."""

    commit: str | None


class PushStep(msgspec.Struct, frozen=True):
    """Push of the commit to the job's branch."""


class PullRequestStep(msgspec.Struct, frozen=True):
    """Open pull request of the job, at `url`."""

    url: str


Step = CheckOutStep | RunStep | CommitStep | PushStep | PullRequestStep


class Steps(msgspec.Struct, frozen=True, omit_defaults=True):
    """Finished steps of a turn, in order; None for an unfinished step."""

    check_out: CheckOutStep | None = msgspec.field(default=None, name="check out")
    run: RunStep | None = None
    commit: CommitStep | None = None
    push: PushStep | None = None
    pull_request: PullRequestStep | None = msgspec.field(default=None, name="pull request")

    def adding(self, step: Step) -> "Steps":
        return msgspec.structs.replace(self, **{_FIELDS[type(step)]: step})

    def has(self, step: Step) -> bool:
        """Return whether a step of this type is finished."""
        return getattr(self, _FIELDS[type(step)]) is not None


_FIELDS: dict[type[Step], str] = {
    CheckOutStep: "check_out",
    RunStep: "run",
    CommitStep: "commit",
    PushStep: "push",
    PullRequestStep: "pull_request",
}


def from_json(column: str) -> Steps:
    """Return the steps in a value of the column `steps`. Unknown fields, which a later version stored, are ignored."""
    return msgspec.json.decode(column, type=Steps)


def to_json(steps: Steps) -> str:
    """Return the value of the column `steps`; unfinished steps are omitted."""
    return msgspec.json.encode(steps).decode()
