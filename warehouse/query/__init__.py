"""Snapshots of the lake and the hot log, the views report, and the owner's SQL.

- `table_files`: The Parquet files of a table, for readers that know nothing of Delta.
- `engine`: DuckDB over the lake's files: one in-process database, a cursor a query.
- `snapshot`: Both tables and the hot rows as they stand at one moment.
- `sql_views`: The SQL views `hits`, `daily_views` and `agents` over a snapshot: what the files hold, and the hot
  rows.
- `report`: The page-view report: human and AI views of each path of a project, in a span of time.
- `time_range`: A range of time, cut into whole UTC days and the parts of days at its edges.
- `sql`: An owner's own questions, in DuckDB's SQL, over the views `hits`, `daily_views` and `agents` of one moment.
- `result_cache`: Cache of Arrow tables, limited by the memory that they use.
"""
