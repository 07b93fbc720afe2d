"""Medians, ratios and the record of a run."""

import json
import os
import platform
import signal
import statistics
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from rich.console import Console

from api.cli.output import table

RUNS = 5
RESULTS = Path(__file__).parent / "results"
AGAIN_S = 60
"""Time after which a benchmark that has reached its time limit, and has not ended, is ended again, in seconds."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One figure, with the results of its runs in order."""

    name: str
    unit: str
    runs: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.runs)


def end_within(seconds: float) -> None:
    """End this process with an error after `seconds`, or on SIGTERM. The processes that it has started are ended, too.

    The error is raised again every AGAIN_S seconds, because their end may hang, too.
    """

    def end(number: int, frame: object) -> None:
        raise SystemExit(f"the benchmark was ended by {signal.Signals(number).name}; its time limit is {seconds:g} s")

    for number in (signal.SIGALRM, signal.SIGTERM):
        signal.signal(number, end)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_S)


def ratio(name: str, above: Measured, below: Measured) -> Measured:
    """Return the ratio of each pair of runs, so that a drift of the machine's speed cancels out."""
    return Measured(name, "ratio", [a / b for a, b in zip(above.runs, below.runs, strict=True)])


def record(benchmark: str, figures: list[Measured]) -> None:
    """Print the figures and write them to `results/BENCHMARK.json`."""
    rows = [
        (each.name, _shown(min(each.runs)), _shown(each.median), _shown(max(each.runs)), each.unit) for each in figures
    ]
    Console().print(table(("figure", "min", "median", "max", "unit"), rows, title=benchmark))
    RESULTS.mkdir(exist_ok=True)
    content = {
        "benchmark": benchmark,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "readership": version("readership"),
        "figures": [{**asdict(each), "median": each.median} for each in figures],
    }
    (RESULTS / f"{benchmark}.json").write_text(json.dumps(content, indent=1) + "\n")


def _shown(figure: float) -> str:
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"
