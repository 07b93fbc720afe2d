"""Vendored files have the bytes of the package that the README beside them names."""

import hashlib
import re

from api.dashboard.web.assets import FOLDER


def test_vendored_files_are_unmodified() -> None:
    text = (FOLDER / "vendor/README.md").read_text()
    listed = dict(re.findall(r"^\| `([^`]+)` .* `([0-9a-f]{64})` \|$", text, re.MULTILINE))
    files = {path.name: path for path in (FOLDER / "vendor").iterdir() if path.suffix == ".js"}
    assert {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()} == listed
