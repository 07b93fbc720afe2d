"""Facts of operators become address lists."""

from pathlib import Path

import msgspec
import pytest

from ingest.verification.address_lists import decode, read_folder
from ingest.verification.lists import compile_lists

FACT = {
    "list": "anthropic",
    "operator": "Anthropic",
    "tokens": ["ClaudeBot"],
    "source": "https://claude.com/crawling/bots.json",
    "created": "2026-08-13T20:38:01Z",
    "seen": "2026-09-02",
    "copies": 2,
    "prefixes": ["216.73.216.0/22", "34.162.46.92/32"],
    "only_in_older_copy": ["34.162.0.1/32"],
    "only_in_newer_copy": ["216.73.216.0/22", "34.162.46.92/32"],
}


def test_facts_replace_the_lists_of_a_folder(tmp_path: Path) -> None:
    facts, folder = tmp_path / "facts.jsonl", tmp_path / "lists"
    folder.mkdir()
    (folder / "former-bot.json").write_text("{}")
    facts.write_bytes(msgspec.json.encode(FACT) + b"\n")
    compile_lists.main(facts, folder)
    assert [path.name for path in folder.iterdir()] == ["anthropic-bots.json"]
    [written] = read_folder(folder).values()
    assert decode((folder / "anthropic-bots.json").read_bytes(), "") == written
    assert written.tokens == ("ClaudeBot", "Claude-User", "Claude-SearchBot")
    assert written.never_spoofed == ("Claude-User",)
    assert written.prefixes == ("34.162.46.92/32", "216.73.216.0/22")
    assert written.label == "list:anthropic-bots 2026-09-02"
    assert written.remark == (
        "The prefixes are those of the newer copy. 2 prefixes only in the newer copy, 1 prefix only in the older one."
    )


def test_list_without_a_use_is_refused() -> None:
    fact = msgspec.convert(FACT | {"list": "unknown-bot"}, compile_lists.Fact)
    with pytest.raises(KeyError, match="unknown-bot"):
        compile_lists.compile_list(fact)
