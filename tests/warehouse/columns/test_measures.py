"""A measure is one row of MEASURES: rollups, their check and the cells of reports then have it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.warehouse.site import ROOT

ROWS = '    Measure("views", "1", "page views"),'
MARKDOWN = "Measure('markdown', \"(format = 'markdown')::INTEGER\", 'page views answered with Markdown'),"


@pytest.mark.long
def test_added_measure_is_counted_in_rollups_edges_and_waiting_rows(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "warehouse", tmp_path / "warehouse")
    module = tmp_path / "warehouse" / "columns" / "dimensions.py"
    assert ROWS in module.read_text()
    module.write_text(module.read_text().replace(ROWS, ROWS + MARKDOWN))
    ran = subprocess.run(
        [sys.executable, "-m", "tests.warehouse.columns.added_measure"],
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    sums, faults = json.loads(ran.stdout)
    assert sums == {name: [{"views": 5, "markdown": 3}] for name in ("traffic", "path", "userAgent")}
    assert faults == [None]
