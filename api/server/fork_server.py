"""What the fork server imports: the app and the parsers' tables, once for all server processes, which share them."""

import gc
from importlib import import_module

from api.server import counters

counters.share()
for _name in ("api.server.http_server", "ingest.classification.user_agent"):  # which import `api.metrics`
    import_module(_name)
gc.collect()
gc.freeze()  # a collection in a server process would write to the pages that it shares
