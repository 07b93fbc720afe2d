"""The rooms of each package: complete lists of modules."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("ingest", "warehouse", "api", "agent")
FOLDERS = sorted(
    init.parent.relative_to(ROOT).as_posix() for package in PACKAGES for init in (ROOT / package).rglob("__init__.py")
)


def modules(folder: str) -> set[str]:
    """Return the names of the modules and rooms in a folder."""
    inside = (ROOT / folder).iterdir()
    return {path.stem for path in inside if path.suffix == ".py" or (path / "__init__.py").exists()} - {"__init__"}


def listed(folder: str) -> list[str]:
    """Return the names that begin the items of the list in a folder's docstring."""
    text = ast.get_docstring(ast.parse((ROOT / folder / "__init__.py").read_text())) or ""
    return [
        name
        for item in re.findall(r"^- ((?:`\w+`(?:, )?)+)", text, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", item)
    ]


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstring_lists_each_module_once(folder: str) -> None:
    assert sorted(listed(folder)) == sorted(modules(folder))
