"""Checks that the stores are complete and agree with each other.

- `lake_lock`: Lock of the lake for one writer, on this machine and over all machines with one hot log in PostgreSQL.
- `older_errors`: Move of the table `daily_errors` of older releases into `requests`.
- `durability`: Nothing is deleted before its replacement is synced, and a loss of acknowledged rows is an error.
- `completeness`: Comparison of the hot log and the control database with the lake, which finds a missing or older one.
- `hot_log_check`: Check of the hot log: its SQLite file or PostgreSQL server, and the waiting batches in it.
"""
