"""What can go wrong with agent jobs. Messages are for the caller, or for the one who reads a job's log."""


class AgentError(Exception):
    """Base of the errors of agent jobs."""


class JobNotFound(AgentError):
    """The project has no job of that id."""


class JobArchived(AgentError):
    """The job is archived: it takes no message any more."""


class JobNotActive(AgentError):
    """The job is not active."""


class JobStillActive(AgentError):
    """The job is active: it cannot be archived."""


class NotConfigured(AgentError):
    """The project has no repository, so that no agent can work on it."""


class InvalidConfiguration(AgentError):
    """What is said of a project's repository, code host or agent is not of the form asked for."""


class QuotaExceeded(AgentError):
    """The project's limit of an hour is reached. The sender may try again after `reset_s` seconds."""

    def __init__(self, reason: str, operation: str, reset_s: int) -> None:
        super().__init__(reason)
        self.operation = operation
        self.reset_s = reset_s


class IdempotencyMismatch(AgentError):
    """The Idempotency-Key was used before, for another prompt."""


class LeaseLost(AgentError):
    """Another worker took the turn over: whatever this one does now must have no effect."""


class TurnFailed(AgentError):
    """A turn cannot go on. The message is the job's failure reason: what is wrong, and what to do about it."""


class TurnStopped(TurnFailed):
    """The turn was told to stop while a program of it ran."""


class ProgramTerminated(TurnFailed):
    """A program of the turn was ended by somebody else's SIGTERM, as when the whole service is told to stop."""


class ProgramTimedOut(TurnFailed):
    """A program of the turn did not end within its time."""


class SecretUnreadable(TurnFailed):
    """A secret is not where the project says. The message names the place and never what is there."""


class WorkspaceUnusable(TurnFailed):
    """The job's folder cannot be written, or what the agent left there cannot be committed."""


class GitFailed(TurnFailed):
    """git failed in a way that has no name here. The message has its words."""


class RepositoryUnreadable(TurnFailed):
    """The repository is not there, or the token may not do with it what a job does."""


class RefNotFound(TurnFailed):
    """The repository has no branch of the name that work should start from."""


class PushRefused(TurnFailed):
    """The host did not take the branch. The message has its words."""


class PullRequestRefused(TurnFailed):
    """The code host did not open the pull request. The message has its words."""


class ForgeUnavailable(TurnFailed):
    """The host did not answer, or asked to be left alone for `retry_after_s`: the same may work in a moment."""

    def __init__(self, reason: str, retry_after_s: float = 0) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s
