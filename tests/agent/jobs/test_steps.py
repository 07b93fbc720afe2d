"""Stored form of a turn's finished steps."""

import json
from typing import Any

import msgspec
import pytest

from agent.jobs import steps
from agent.jobs.steps import CheckOutStep, CommitStep, PullRequestStep, PushStep, RunStep, Steps

STORED = {
    "check out": {"commit": "abc", "follows_up": False, "mark": "0123"},
    "run": {"session": None},
    "commit": {"commit": "def"},
    "push": {},
    "pull request": {"url": "https://git.example/pull/1"},
}
"""Finished turn, as every version since 0.1.0 stores it."""
ALL = (
    CheckOutStep("abc", follows_up=False, mark="0123"),
    RunStep(None),
    CommitStep("def"),
    PushStep(),
    PullRequestStep("https://git.example/pull/1"),
)


@pytest.mark.parametrize("number", range(len(ALL) + 1))
def test_each_prefix_of_the_steps_is_stored_as_in_version_0_1_0_and_read_back(number: int) -> None:
    finished = Steps()
    for step in ALL[:number]:
        assert not finished.has(step)
        finished = finished.adding(step)
        assert finished.has(step)
    stored = dict(list(STORED.items())[:number])
    assert json.loads(steps.to_json(finished)) == stored
    assert steps.from_json(json.dumps(stored)) == finished


def test_step_or_field_of_a_later_version_is_ignored() -> None:
    stored = {"run": {"session": "s", "tokens": 5}, "review": {}}
    assert steps.from_json(json.dumps(stored)) == Steps(run=RunStep("s"))


@pytest.mark.parametrize("stored", [{"commit": {}}, {"run": {"session": 1}}, {"push": None, "pull request": "url"}, []])
def test_damaged_value_is_refused(stored: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        steps.from_json(json.dumps(stored))
