"""Static files: vendored ones are unmodified files of their packages, and no style sheet moves anything."""

import hashlib
import re

from api.dashboard.web.assets import FOLDER


def test_vendored_files_are_unmodified() -> None:
    text = (FOLDER / "vendor/README.md").read_text()
    listed = dict(re.findall(r"^\| `([^`]+)` .* `([0-9a-f]{64})` \|$", text, re.MULTILINE))
    files = {path.name: path for path in (FOLDER / "vendor").iterdir() if path.suffix == ".js"}
    assert {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()} == listed


def test_nothing_moves_also_without_a_preference_for_reduced_motion() -> None:
    sheets = {path.name: path.read_text() for path in FOLDER.rglob("*.css")}
    assert "app.css" in sheets
    moving = re.compile(r"animation|transition|scroll-behavior|@keyframes")
    assert [name for name, text in sheets.items() if moving.search(text)] == []
