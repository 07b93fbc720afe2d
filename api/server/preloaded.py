"""Modules that the fork server imports: server processes are forks of it, and share them.

None of them starts a thread, because a fork has only the thread that forked. pyarrow, deltalake and numpy start threads
when they are imported. Without its thread, the jemalloc of Arrow would retain freed memory: 285 MiB instead of 61.
None is `api.metrics`, whose counters belong to one process. Each server process imports all other modules itself.
"""

import gc
from importlib import import_module

ROOTS = (
    "agent.worker.child_process",
    "api.cli.main",
    "api.accounts.one_time_links",
    "api.http.auth",
    "api.http.parameters",
    "api.server.server_process",
    "babel.dates",
    "babel.numbers",
    "ingest.classification.explain",
    "ingest.formats.page_filter",
    "ingest.verification.signature_agents",
    "jinja2.ext",
    "prometheus_client.multiprocess",
    "protego",
    "starlette.applications",
    "uvicorn.protocols.http.httptools_impl",
    "uvloop",
)
"""Modules which, with those that they import, take most of a server process's time for imports: 0.7 s of 1.2 s."""

for _name in ROOTS:
    import_module(_name)
gc.collect()
gc.freeze()  # else the collector of each process would write to, and thereby copy, the memory that all share
