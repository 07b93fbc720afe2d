"""Parsers of the agents' output: session, summary, success or error.

An exit status is not enough: codex 0.169 exits with 0 when all of its commands were blocked, mini-swe-agent exits with
0 at its limits, and Claude Code reports `is_error` together with the subtype `success`.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

LINE_BYTES_MAX = 16 * 1024 * 1024
"""Maximum size of a parsed line, in bytes."""
TAIL_BYTES = 64 * 1024
"""Size of the stored end of the output, in bytes."""
SUMMARY_CHARACTERS = 4000
"""Maximum length of a summary."""
REASON_CHARACTERS = 500
"""Maximum length of the output that a failure reason quotes."""
SESSION_CHARACTERS = 200
"""Maximum length of a session id; a longer one is dropped."""

Event = Mapping[str, Any]
"""JSON object that an agent printed; its shape is defined by the agent."""


@dataclass(frozen=True, slots=True)
class Record:
    """Result of a turn as the agent reports it. With neither `is_done` nor `error` the agent did not finish."""

    session: str | None = None
    summary: str = ""
    is_done: bool = False
    """The agent reported success."""
    error: str | None = None
    """The reason why the agent reported a failure."""


EventParser = Callable[[Record, Event], Record]


def parse_claude_event(record: Record, event: Event) -> Record:
    """Return the record, updated by an event of Claude Code."""
    session = event.get("session_id") or record.session
    if event.get("type") != "result":
        return replace(record, session=session)
    message = str(event.get("result") or "; ".join(map(str, event.get("errors") or ())))
    if event.get("is_error") or event.get("subtype") != "success":
        return Record(session, record.summary, error=message or str(event.get("subtype")))
    return Record(session, message, is_done=True)


def parse_codex_event(record: Record, event: Event) -> Record:
    """Return the record, updated by an event of codex."""
    match event:
        case {"type": "thread.started", "thread_id": str(session)}:
            return replace(record, session=session)
        case {"type": "item.completed", "item": {"type": "agent_message", "text": str(text)}}:
            return replace(record, summary=text)
        case {"type": "turn.started"}:
            return replace(record, is_done=False, error=None)
        case {"type": "turn.completed"}:
            return replace(record, is_done=True, error=None)
        case {"type": "turn.failed", "error": {"message": str(message)}}:
            return replace(record, is_done=False, error=message)
    return record


def parse_opencode_event(record: Record, event: Event) -> Record:
    """Return the record, updated by an event of opencode.

    A step that ends with tool calls is followed by another step; `stop` ends the turn.
    """
    record = replace(record, session=event.get("sessionID") or record.session)
    match event:
        case {"type": "text", "part": {"text": str(text)}}:
            return replace(record, summary=text)
        case {"type": "step_finish", "part": {"reason": "stop"}}:
            return replace(record, is_done=True, error=None)
        case {"type": "step_finish", "part": {"reason": "tool-calls"}} | {"type": "step_start"}:
            return replace(record, is_done=False)
        case {"type": "step_finish", "part": {"reason": str(reason)}}:
            return replace(record, is_done=False, error=f"the model stopped: {reason}")
        case {"type": "error", "error": dict(error)}:
            message = error.get("data", {}).get("message") or error.get("name") or json.dumps(error)
            return replace(record, is_done=False, error=str(message))
    return record


def parse_mini_event(record: Record, event: Event) -> Record:
    """Return the record of mini-swe-agent's trajectory file, which has the exit status and all messages.

    For another event, return `record` unchanged.
    """
    if "trajectory_format" not in event:
        return record
    info, messages = event["info"], event["messages"]
    status = str(info.get("exit_status"))
    if status == "Submitted":
        texts = [message.get("content") for message in messages if message.get("role") == "assistant"]
        return Record(summary=str(info.get("submission") or next(filter(None, reversed(texts)), "")), is_done=True)
    last = messages[-1].get("content") if messages else ""
    return Record(error=f"{status}: {last}" if last and last != status else status)


@dataclass(slots=True)
class Output:
    """Output of an agent, parsed line by line into a record. Only the last TAIL_BYTES are stored."""

    parse: EventParser | None
    record: Record = field(default_factory=Record)
    tail: bytes = b""
    _line: bytearray = field(default_factory=bytearray)

    def add(self, stream: str, chunk: bytes) -> None:
        """Add a chunk of standard output or standard error."""
        self.tail = (self.tail + chunk)[-TAIL_BYTES:]
        if stream != "stdout":
            return
        first, *others = chunk.split(b"\n")
        self._line += first[: LINE_BYTES_MAX - len(self._line)]
        for line in others:
            self._add_line(bytes(self._line))
            self._line = bytearray(line)

    def _add_line(self, line: bytes) -> None:
        """Update the record by one line; ignore a line that is not an event."""
        if self.parse is None:
            text = line.strip().decode(errors="replace")
            self.record = Record(summary=text[:SUMMARY_CHARACTERS] or self.record.summary)
            return
        try:
            event = json.loads(line)
            record = self.parse(self.record, event) if isinstance(event, dict) else self.record
        except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
            return  # JSON, but not an event
        session = record.session
        is_usable = isinstance(session, str) and session.isprintable() and len(session) <= SESSION_CHARACTERS
        self.record = record if session is None or is_usable else replace(record, session=None)

    def last_lines(self) -> str:
        """Return the end of the output in one line, short enough for a failure reason."""
        return " ".join(self.tail.decode(errors="replace").split())[-REASON_CHARACTERS:]
