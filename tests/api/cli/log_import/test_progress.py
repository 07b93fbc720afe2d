"""Terminal output of an import: a progress bar and a summary."""

from collections import Counter

import pytest

from api.cli.log_import import progress
from ingest.imports.chunk import Summary


def rows(text: str) -> dict[str, str]:
    """Return the count of each name in a printed table."""
    pairs = [line.replace("│", " ").rsplit(maxsplit=1) for line in text.splitlines()]
    return {pair[0].strip(): pair[1] for pair in pairs if len(pair) == 2}


def test_summary_counts_page_views_agents_and_skipped_lines(capsys: pytest.CaptureFixture[str]) -> None:
    summary = Summary(lines=1_000, known=30, human=5, ai=3, bot=2, formats={"access.log": "combined"})
    summary.agents = Counter({"ClaudeBot": 1, "GPTBot": 2})
    summary.skipped = Counter({"not_a_page": 980, "malformed": 10})
    progress.show(summary, 0.5, is_dry_run=False)
    printed = capsys.readouterr().out
    counts = rows(printed)
    expected = {"page views": "10", "human": "5", "AI": "3", "GPTBot": "2", "ClaudeBot": "1", "other bots": "2"}
    assert {name: counts[name] for name in expected} == expected
    assert (counts["skipped"], counts["not a page"], counts["malformed"]) == ("990", "980", "10")
    assert (counts["read before"], counts["lines/s"]) == ("30", "2,000")
    assert printed.index("GPTBot") < printed.index("ClaudeBot"), "the agent with more page views is first"
    assert "Dry run" not in printed


def test_summary_of_a_dry_run_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    progress.show(Summary(lines=1), 1.0, is_dry_run=True)
    assert " ".join(capsys.readouterr().out.split()).startswith("Dry run: nothing is stored")


def test_bar_is_not_printed_without_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with progress.progress(100) as on_read:
        on_read(50, 3)
    assert capfd.readouterr() == ("", "")
