"""Benchmarks of the service. Most figures are a ratio of two measurements in the same run.

- `measure`: medians, ratios and the record of a run.
- `data`: generated hits, and an access log of them.
- `service`: the service in a process of its own, and its clients.
- `lake`: a lake of generated hits, of any size; does not measure.
- `peers`: the reports of other programs over the hits of the same lake.
- `start`: seconds from a command to the first accepted hit, to the first chart, and to the first own view on a chart.
- `classify`: time to classify hostile user agents.
- `recall`: recall of the classification on the labelled user agents.
- `single`: one hit a request, against the empty endpoint.
- `batch`: NDJSON posts, against decoding and writing the same rows as Parquet.
- `import_log`: the import of a log, against GoAccess.
- `export`: the reports over HTTP on a lake of any size, against the peers.
- `pages`: the pages of the dashboard on a lake of any size.
- `jobs`: time to the start and to the take-over of an agent job.
- `cluster`: batch work in a Ray cluster, against processes of this machine.
- `attacks`: what a stranger can make the service store, and what that costs its owner.
- `memory`: resident memory of the server while 10 million hits arrive, and while many projects are read.
"""

import os

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a measured program caches its bytecode, as an installed one does
