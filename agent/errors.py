"""Errors of agent jobs. Their messages are for the caller or for readers of the job's log."""


class AgentError(Exception):
    """Base class of the errors of agent jobs."""


class JobNotFound(AgentError):
    """The project has no job with this id."""


class JobArchived(AgentError):
    """The job is archived and accepts no messages."""


class JobNotActive(AgentError):
    """The job is not active and cannot be cancelled."""


class JobStillActive(AgentError):
    """The job is active and cannot be archived."""


class NotConfigured(AgentError):
    """The project has no repository, which an agent job needs."""


class InvalidConfiguration(AgentError):
    """A setting of the project's repository, forge or coding agent has an invalid form."""


class QuotaExceeded(AgentError):
    """The project's hourly quota of `operation` is used up. The caller may try again after `reset_s` seconds."""

    def __init__(self, reason: str, operation: str, reset_s: int) -> None:
        super().__init__(reason)
        self.operation = operation
        self.reset_s = reset_s


class IdempotencyMismatch(AgentError):
    """The Idempotency-Key was used before with another prompt."""


class LeaseLost(AgentError):
    """The turn was cancelled or taken over by another worker. This worker must write nothing more for it."""


class TurnFailed(AgentError):
    """A turn cannot continue. The message is the job's failure reason: the cause, and what to do about it."""


class TurnStopped(TurnFailed):
    """The turn was cancelled, or its worker stops."""


class ProgramTerminated(TurnFailed):
    """A program of the turn received a SIGTERM from outside, for example when the whole service is stopped."""


class ProgramTimedOut(TurnFailed):
    """A program of the turn exceeded its time limit."""


class PushRefused(TurnFailed):
    """The forge refused the branch. The message quotes the forge."""


class ForgeUnavailable(TurnFailed):
    """The forge did not respond, or asked for a pause of `retry_after_s` seconds. Another attempt may succeed."""

    def __init__(self, reason: str, retry_after_s: float = 0) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s
