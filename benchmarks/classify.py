"""Milliseconds to classify a user agent: ordinary, repeated, and hostile ones of 10 kB. The goal is under 5 ms each."""

import json
import random
import string
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import RUNS, Measured, record
from ingest.hits.hit import Hit
from ingest.hits.row import row

HOSTILE = 400
LENGTH = 10_000
SAMPLE = Path(__file__).parent.parent / "tests" / "ingest" / "classification" / "ua_sample.jsonl"
FAMILIES: dict[str, Callable[[random.Random], str]] = {
    "random text": lambda chance: "".join(chance.choices(string.printable, k=LENGTH)),
    "one letter": lambda chance: chance.choice(string.ascii_letters) * LENGTH,
    "bot after bot": lambda chance: f"bot{chance.random()} " * (LENGTH // 20),
    "parentheses": lambda chance: f"Mozilla/5.0 {chance.random()}" + "(" * LENGTH,
    "Android builds": lambda chance: f"Mozilla/5.0 (Linux; Android {chance.random()}; " + "Build/" * (LENGTH // 6),
    "half an agent": lambda chance: f"{chance.random()} " + "ChatGPT-Use " * (LENGTH // 12),
    "versions": lambda chance: f"Chrome/{chance.random()}" + ".1" * (LENGTH // 2),
}


def main() -> None:
    chance = random.Random(1)
    ordinary = [json.loads(line)["ua"] for line in SAMPLE.read_text().splitlines()]
    _slowest(ordinary)
    figures = []
    for name, make in FAMILIES.items():
        figures.append(
            Measured(
                f"slowest of {HOSTILE}: {name}",
                "ms",
                [_slowest([make(chance) for _ in range(HOSTILE)]) for _ in range(RUNS)],
            )
        )
    fresh = [[f"{agent} {run}" for agent in ordinary] for run in range(RUNS)]
    figures.append(Measured("slowest of 60 ordinary, not seen before", "ms", [_slowest(agents) for agents in fresh]))
    figures.append(Measured("slowest of 60 ordinary, seen before", "ms", [_slowest(agents) for agents in fresh]))
    record("classify", figures)


def _slowest(agents: list[str]) -> float:
    """Return the longest time from a hit with one of the user agents to its row, in ms."""
    longest = 0.0
    for agent in agents:
        hit = Hit("/", 0, agent, None, {}, None, None, None)
        began = time.perf_counter()
        row("bench", hit, "server", 0)
        longest = max(longest, time.perf_counter() - began)
    return longest * 1000
