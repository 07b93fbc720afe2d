"""What must be counted, as a dictionary: acknowledged hits, and hits of operations that have not ended."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import NamedTuple


class Key(NamedTuple):
    """What a hit or event is counted by. `view` is the SQL view with it: `hits`, `events`, or `errors` of requests."""

    project: str
    day: date
    path: str
    traffic: str
    agent: str | None
    view: str


Counts = Counter[Key]


class Fault(AssertionError):
    """The product's data differ from the model."""


@dataclass(eq=False)
class Deletion:
    """Hits that an operation deletes, or has begun to delete before it was killed: each may be counted or not."""

    counts: Counts


@dataclass(eq=False)
class Log:
    """An access log that grows: its project and file, the keys of its lines, and how many are stored for certain."""

    project: str
    file: Path
    keys: list[Key] = field(default_factory=list)
    stored: int = 0
    is_busy: bool = False


@dataclass(eq=False)
class Import:
    """Lines of a log that an operation stores in their order: any first part of them may be counted."""

    log: Log
    lines: list[Key]
    has_ended: bool = False


@dataclass
class Model:
    """Acknowledged hits, and those of operations that have not ended or were killed."""

    sure: Counts = field(default_factory=Counter)
    deletions: list[Deletion] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)
    seen_s: dict[tuple[str, bool, str], float] = field(default_factory=dict)
    """Time at which an event id was stored, by project, whether it is a beacon's, and id."""

    def begin_deletion(self, is_chosen: Callable[[Key], bool]) -> None:
        """Make the chosen hits unsure: a report may have each of them until `end_deletion` is called."""
        chosen = Counter({key: number for key, number in self.sure.items() if is_chosen(key)})
        self.sure -= chosen
        self.deletions.append(Deletion(chosen))

    def end_deletion(self, is_chosen: Callable[[Key], bool]) -> None:
        """Remove the chosen hits of all deletions: one that was killed is complete once it was repeated."""
        for deletion in self.deletions:
            deletion.counts = Counter({key: each for key, each in deletion.counts.items() if not is_chosen(key)})
        self.deletions = [each for each in self.deletions if each.counts]

    def store(self, pending: Import, count: int) -> None:
        """Make the next lines of an import sure."""
        self.sure.update(pending.lines[:count])
        del pending.lines[:count]
        pending.log.stored += count

    def settle(self) -> None:
        """End the imports that were killed: a comparison of all hits has shown which of their lines are stored."""
        for pending in [each for each in self.imports if each.has_ended]:
            self.imports.remove(pending)
            pending.log.is_busy = False

    def compare(self, what: str, observed: Counts, of: Callable[[Key], Key | None] = lambda key: key) -> None:
        """Raise Fault unless each count is that of the model, and make sure what was observed of imports.

        `of` returns by what `observed` counts a key; None if not at all.
        """
        for pending in self.imports:
            seen = [number for number, key in enumerate(pending.lines, start=1) if observed[of(key)]]  # type: ignore[index]
            self.store(pending, max(seen, default=0))
        low = high = _mapped(self.sure, of)
        for deletion in self.deletions:
            high = high + _mapped(deletion.counts, of)  # a new counter
        for key in sorted({*low, *observed}, key=str):
            if not low[key] <= observed[key] <= high[key]:
                expected = str(low[key]) if low[key] == high[key] else f"{low[key]} to {high[key]}"
                raise Fault(f"{what} has {observed[key]} of {expected}: {key}")


def _mapped(counts: Mapping[Key, int], of: Callable[[Key], Key | None]) -> Counts:
    mapped: Counts = Counter()
    for key, number in counts.items():
        if (new := of(key)) is not None:
            mapped[new] += number
    return mapped
