"""Snapshots of the lake and the hot log, and the owner's SQL.

- `engine`: DuckDB over the lake's files: one in-process database, and a cursor for each query.
- `hot_rows`: Hot rows in the memory of a reader.
- `moment`: Moments: which commit of `hits` and which hot batches a report was computed from.
- `result_cache`: Cache of results, limited by the memory that they use.
- `past`: Older versions of the tables and the hot rows that they lacked.
- `snapshot`: Snapshots of the tables for reports, errors and SQL, the newest or those of a moment.
- `time_range`: Time ranges, and the whole UTC days near them.
- `sql_views`: The SQL views `hits`, `daily_views`, `errors` and `agents` over a snapshot.
- `sql`: Queries of the site's owner in DuckDB's SQL.
"""
