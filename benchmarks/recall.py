"""Recall of the classification on the labelled user agents, by class and group.

Half of the set was not read by the authors of the rules (`held_out`). docs/classification.md describes the origin and
the limits of the set.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
from rich.console import Console

from api.cli.output import table
from ingest.classification.classifier import RULESET, Classification, Traffic, classify

SET = Path(__file__).parent.parent / "tests" / "data" / "labelled_user_agents.jsonl"


class Labelled(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A user agent of the set; `source` names the package, its version and the file that has it."""

    user_agent: str
    traffic: Traffic
    group: str
    source: str
    held_out: bool
    note: str | None = None


class Recall(NamedTuple):
    """Number of user agents of a group that the rules classify correctly, and of all user agents of the group."""

    correct: int
    labelled: int

    @property
    def percent(self) -> float:
        return 100 * self.correct / self.labelled if self.labelled else 100.0

    def __str__(self) -> str:
        return f"{self.correct} of {self.labelled} ({self.percent:.1f} %)" if self.labelled else ""


class Miss(NamedTuple):
    """A user agent that the rules classify wrongly, and their answer."""

    row: Labelled
    answer: Classification


def labelled() -> list[Labelled]:
    """Return the rows of the set, in the file's order."""
    return [msgspec.json.decode(line, type=Labelled) for line in SET.read_bytes().splitlines()]


def misses(rows: Iterable[Labelled]) -> Iterator[Miss]:
    """Yield each row that the rules classify wrongly."""
    for row in rows:
        answer = classify(row.user_agent)
        if answer.traffic != row.traffic:
            yield Miss(row, answer)


def recall(rows: Iterable[Labelled]) -> Recall:
    """Return the recall of all rows together."""
    all_rows = list(rows)
    return Recall(len(all_rows) - len(list(misses(all_rows))), len(all_rows))


def main() -> None:
    """Print the recall of each group and class, then every miss."""
    groups: defaultdict[tuple[Traffic, str], list[Labelled]] = defaultdict(list)
    for row in labelled():
        groups[row.traffic, row.group].append(row)
        groups[row.traffic, "all"].append(row)
    lines = [(*group, *map(str, _both_halves(rows))) for group, rows in sorted(groups.items())]
    title = f"recall, ruleset {RULESET}"
    Console().print(table(("class", "group", "read by the authors", "held out"), lines, title=title))
    for miss in misses(labelled()):
        print(miss.row.traffic, miss.row.group, miss.answer.rule, miss.row.user_agent, sep="\t")


def _both_halves(rows: list[Labelled]) -> tuple[Recall, Recall]:
    return recall(row for row in rows if not row.held_out), recall(row for row in rows if row.held_out)
