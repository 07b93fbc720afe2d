"""File of the known AI agents."""

from pathlib import Path

import pyarrow.parquet as pq

from warehouse.lake.agents_file import AGENTS_FILE, write_agents
from warehouse.lake.roots import LocalPath
from warehouse.schema import AGENTS

GPTBOT = {"name": "GPTBot", "operator": "OpenAI", "purpose": "training", "pattern": "gptbot"}
CLAUDE = {"name": "ClaudeBot", "operator": "Anthropic", "purpose": "training", "pattern": "claudebot"}


def test_file_has_the_rows_and_the_comments_of_the_columns(tmp_path: Path) -> None:
    write_agents(LocalPath(tmp_path), [GPTBOT, CLAUDE])
    table = pq.read_table(tmp_path / AGENTS_FILE)
    assert table.to_pylist() == [GPTBOT, CLAUDE]
    assert table.schema.equals(AGENTS)
    assert table.schema.field("operator").metadata[b"comment"] == b"who runs it"


def test_same_rows_leave_the_file_and_other_rows_replace_it(tmp_path: Path) -> None:
    write_agents(LocalPath(tmp_path), [GPTBOT])
    first = (tmp_path / AGENTS_FILE).stat()
    write_agents(LocalPath(tmp_path), [GPTBOT])
    same = (tmp_path / AGENTS_FILE).stat()
    assert (same.st_ino, same.st_mtime_ns) == (first.st_ino, first.st_mtime_ns)
    write_agents(LocalPath(tmp_path), [CLAUDE])
    assert pq.read_table(tmp_path / AGENTS_FILE).to_pylist() == [CLAUDE]
    assert [path.name for path in tmp_path.iterdir()] == [AGENTS_FILE]
