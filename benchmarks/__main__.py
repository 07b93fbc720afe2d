"""Run benchmarks: `python -m benchmarks [NAME [ARGUMENT...]]`, all of them without a name."""

import importlib
import sys

import benchmarks

NAMES = (
    "start",
    "classify",
    "recall",
    "single",
    "batch",
    "service.beside",
    "import_log",
    "export",
    "pages",
    "jobs",
    "memory",
)

if sys.argv[1:] and sys.argv[1] not in {*NAMES, "lake"}:
    sys.exit(f"{__doc__}\n\n{benchmarks.__doc__}")
for name in sys.argv[1:2] or NAMES:
    importlib.import_module(f"benchmarks.{name}").main(*sys.argv[2:])
