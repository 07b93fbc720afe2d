"""Parsers of the agents' output. The agents printed these lines; Claude Code's are from its documentation."""

import json
from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.coding_agent.output import EventParser, Output, Record
from agent.coding_agent.presets import PRESETS

CLAUDE = {"type": "result", "subtype": "success", "is_error": False, "result": "Done.", "session_id": "s1"}
CODEX = [
    {"type": "thread.started", "thread_id": "t1"},
    {"type": "item.completed", "item": {"type": "error", "message": "Model metadata for `m` not found."}},
    {"type": "turn.started"},
    {"type": "item.completed", "item": {"type": "agent_message", "text": "Done."}},
]
OPENCODE = [
    {"type": "step_start", "sessionID": "o1", "part": {"type": "step-start"}},
    {"type": "text", "sessionID": "o1", "part": {"type": "text", "text": "Done."}},
]
UNAUTHORIZED = {"name": "APIError", "data": {"message": "Incorrect API key provided", "statusCode": 401}}


def finish(reason: str) -> dict[str, object]:
    return {"type": "step_finish", "sessionID": "o1", "part": {"reason": reason}}


def trajectory(status: str, submission: str = "") -> dict[str, object]:
    info = {"exit_status": status, "submission": submission}
    return {"info": info, "messages": [{"role": "exit", "content": status}], "trajectory_format": "mini-swe-agent-1.1"}


@pytest.mark.parametrize(
    ("name", "events", "expected"),
    [
        ("claude", [{"type": "system", "subtype": "init", "session_id": "s1"}, CLAUDE], Record("s1", "Done.", True)),
        (
            "claude",
            [CLAUDE | {"is_error": True, "result": "Invalid API key"}],
            Record("s1", "", False, "Invalid API key"),
        ),
        (
            "claude",
            [{**CLAUDE, "subtype": "error_max_turns", "result": None}],
            Record("s1", "", False, "error_max_turns"),
        ),
        ("claude", [{"type": "assistant", "session_id": "s1"}], Record("s1")),
        ("codex", [*CODEX, {"type": "turn.completed", "usage": {}}], Record("t1", "Done.", True)),
        ("codex", CODEX, Record("t1", "Done.")),
        ("codex", [*CODEX, {"type": "turn.failed", "error": {"message": "401"}}], Record("t1", "Done.", False, "401")),
        ("opencode", [*OPENCODE, finish("stop")], Record("o1", "Done.", True)),
        ("opencode", [*OPENCODE, finish("tool-calls")], Record("o1", "Done.")),
        ("opencode", [*OPENCODE, finish("stop"), OPENCODE[0]], Record("o1", "Done.")),
        ("opencode", [*OPENCODE, finish("length")], Record("o1", "Done.", False, "the model stopped: length")),
        (
            "opencode",
            [{"type": "error", "sessionID": "o1", "error": UNAUTHORIZED}],
            Record("o1", "", False, "Incorrect API key provided"),
        ),
        ("mini-swe-agent", [trajectory("Submitted", "Done.")], Record(None, "Done.", True)),
        (
            "mini-swe-agent",
            [trajectory("Submitted") | {"messages": [{"role": "assistant", "content": "I did."}, {"role": "exit"}]}],
            Record(None, "I did.", True),
        ),
        ("mini-swe-agent", [trajectory("LimitsExceeded")], Record(None, "", False, "LimitsExceeded")),
    ],
)
def test_events_of_each_agent_give_its_record(name: str, events: list[dict[str, object]], expected: Record) -> None:
    """Parse the output in chunks of several sizes, with other lines between the events."""
    written = b"chatter\n" + b"".join(json.dumps(event).encode() + b"\n[1]\n" for event in events)
    for size in (1, 7, len(written)):
        output = Output(PRESETS[name].parse)
        for start in range(0, len(written), size):
            output.add("stderr", b'{"type": "result"}\n')
            output.add("stdout", written[start : start + size])
        assert output.record == expected


def test_only_the_end_of_the_output_is_stored() -> None:
    output = Output(PRESETS["codex"].parse)
    for _ in range(200):
        output.add("stdout", b"x" * 100_000)
    output.add("stderr", b"the end")
    assert len(output.tail) == 64 * 1024
    assert output.last_lines().endswith("xthe end")


def parse_line_by_line(parser: EventParser | None, written: bytes) -> Record:
    """Return the record of a whole output. Parse every line: this is the slow reference implementation."""
    record = Record()
    for line in written.split(b"\n")[:-1]:
        if parser is None:
            record = Record(summary=line.strip().decode(errors="replace") or record.summary)
            continue
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            record = parser(record, event)
    return record


LINE = st.one_of(
    st.sampled_from([b"", b" ", b"\r", b"{", b"{}", b"[1]", b"\xff", b'"{"', b"Done.", b"\xc2\xa0"]),
    st.sampled_from([*OPENCODE, finish("stop"), finish("length"), {"type": "error", "error": UNAUTHORIZED}]).map(
        lambda event: json.dumps(event).encode()
    ),
).flatmap(lambda line: st.sampled_from([line, b" \t" + line, line + b"\r"]))


@given(
    lines=st.lists(LINE),
    sizes=st.lists(st.integers(1, 60), min_size=1),
    parser=st.sampled_from([None, PRESETS["opencode"].parse]),
)
def test_record_does_not_depend_on_the_chunks(lines: list[bytes], sizes: list[int], parser: EventParser | None) -> None:
    written = b"".join(line + b"\n" for line in lines)
    output, rest, size = Output(parser), written, cycle(sizes)
    while rest:
        length = next(size)
        output.add("stdout", rest[:length])
        rest = rest[length:]
    assert output.record == parse_line_by_line(parser, written)
