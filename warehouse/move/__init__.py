"""Move of the stores of a data folder: the control database and the hot log to PostgreSQL, the lake to an object store.

- `tables`: Rows of SQLite tables, copied to PostgreSQL tables of the same columns.
- `databases`: The control database and the hot log, copied to a PostgreSQL database in one transaction.
- `lake`: The files of a local lake, copied to an object store.
"""
