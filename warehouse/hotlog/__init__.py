"""The hot log: accepted hits that wait for the lake, and hits that were loaded in the last ten minutes.

- `connection`: Connections to the hot log, and the statements on its tables.
- `schema_migrations`: Schema versions of the hot log: its tables in a new file, and migrations of an older file.
- `postgresql`: The hot log in PostgreSQL: the schema of its tables, and the lock of all its write transactions.
- `batches`: Batches of the hot log: accepted hits that wait for the lake, and hits that were loaded in the last ten
  minutes.
- `loads`: Loads: which batches are in all tables of the lake, since when, and how far the tables are synced.
- `retention`: Retention of loaded batches, which the moments of reports name.
- `wal`: Removal of deleted rows from the disk, and a probe that the hot log can be written.
- `refusals`: Deleted projects, whose rows the hot log refuses.
- `disk_space`: Disk space that the loader needs to move the hot log into the lake.
"""
