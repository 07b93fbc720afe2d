"""What the service reaches on this machine, each number as a ratio of two things measured in one run.

- `server`: the service in a process of its own, with one empty endpoint more.
- `client`: requests over kept connections, as fast as they are answered.
- `generate`: a lake of generated hits.
- `start`: from the command to the first accepted hit.
- `classify`: hostile user agents.
- `single`: one hit a request, against the empty endpoint.
- `batch`: NDJSON, against decoding and writing the same rows as Parquet.
- `export`: the views export on ten million hits, against DuckDB over the raw rows.
- `memory`: the server's memory while ten million hits come in.
- `measure`: medians, ratios and the record.
"""
