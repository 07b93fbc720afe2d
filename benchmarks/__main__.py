"""Run benchmarks: `python -m benchmarks [NAME [ARGUMENT...]]`, all of them without a name."""

import importlib
import sys

NAMES = ("start", "classify", "recall", "single", "batch", "import_log", "export", "pages", "jobs", "memory")

for name in sys.argv[1:2] or NAMES:
    importlib.import_module(f"benchmarks.{name}").main(*sys.argv[2:])
