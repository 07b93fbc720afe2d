"""Modules that the fork server imports."""

import json
import subprocess
import sys

IMPORT = """
import importlib, json, os, sys
before = set(os.listdir("/proc/self/fd"))
from api.server import preloaded
print(json.dumps({
    "threads": os.listdir("/proc/self/task"),
    "opened": sorted(set(os.listdir("/proc/self/fd")) - before),
    "modules": list(sys.modules),
}))
"""


def test_preloaded_modules_start_no_thread_open_no_file_and_count_nothing() -> None:
    """Check what a fork would lack, share with its siblings, or count twice."""
    done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True)
    state = json.loads(done.stdout)
    assert len(state["threads"]) == 1
    assert state["opened"] == []
    assert not {"pyarrow", "numpy", "duckdb", "deltalake", "polars", "obstore", "api.metrics"} & set(state["modules"])
    assert {"jinja2", "uvicorn", "ingest.classification.classifier"} <= set(state["modules"])
