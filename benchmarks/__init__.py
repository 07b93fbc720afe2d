"""Benchmarks of the service. Most figures are a ratio of two measurements in the same run.

- `measure`: medians, ratios and the record of a run.
- `client`: an HTTP client that is faster than the server.
- `server`: the service in a process of its own, with an additional empty endpoint.
- `traffic`: distributions of generated hits.
- `lake`: a lake of generated hits, of any size; does not measure.
- `generate_log`: an access log of generated hits.
- `arrivals`: hits that arrive while something else is measured.
- `reader`: timed requests of reports.
- `peers`: the same reports by DuckDB, ClickHouse and SQLite.
- `start`: seconds from the command to the first accepted hit.
- `classify`: time to classify hostile user agents.
- `recall`: recall of the classification on the labelled user agents.
- `single`: one hit a request, against the empty endpoint.
- `batch`: NDJSON posts, against decoding and writing the same rows as Parquet.
- `import_log`: the import of a log, against GoAccess.
- `export`: the reports over HTTP on a lake of any size, against the peers.
- `jobs`: time to the start and to the take-over of an agent job.
- `memory`: resident memory of the server while 10 million hits arrive, and while many projects are read.
"""
