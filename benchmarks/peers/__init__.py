"""Other programs that compute the reports over the hits of the same lake.

- `report`: ranges, results, and the interface of a peer.
- `raw`: DuckDB over the Parquet files of `hits`, without a rollup.
- `clickhouse`, `clickhouse_process`: ClickHouse with a rollup, in a process and an environment of its own.
- `goatcounter`: SQLite with the tables and queries of GoatCounter.
"""
