"""What can go wrong with agent jobs. Messages are for the caller, or for the one who reads a job's log."""


class AgentError(Exception):
    """Base of the errors of agent jobs."""


class JobNotFound(AgentError):
    """The project has no job of that id."""


class JobArchived(AgentError):
    """The job is archived: it takes no message any more."""


class NothingToCancel(AgentError):
    """The job is not active."""


class NotConfigured(AgentError):
    """The project has no repository, so that no agent can work on it."""


class InvalidConfiguration(AgentError):
    """What is said of a project's repository, code host or agent is not of the form asked for."""


class TooManyUses(AgentError):
    """The project's limit of an hour is reached. The sender may try again after `retry_after_s`."""

    def __init__(self, reason: str, retry_after_s: int) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


class IdempotencyMismatch(AgentError):
    """The Idempotency-Key was used before, for another prompt."""


class LeaseLost(AgentError):
    """Another worker took the turn over: whatever this one does now must have no effect."""


class TurnFailed(AgentError):
    """A turn cannot go on. The message is the job's failure reason: what is wrong, and what to do about it."""


class Stopped(TurnFailed):
    """The turn was told to stop while a program of it ran."""


class TimedOut(TurnFailed):
    """A program of the turn did not end within its time."""
