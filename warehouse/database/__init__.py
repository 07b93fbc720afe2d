"""Databases on SQLite and PostgreSQL: their connections, and their statements in `.sql` files.

- `url`: URLs of databases.
- `psycopg_connection`: Connections of psycopg to a PostgreSQL server, and the lock by which they are counted.
- `postgresql`: Connection to a PostgreSQL server that opens again after it was lost.
- `advisory_lock`: Advisory lock of a PostgreSQL server, which one connection at a time has.
- `statements`: SQL statements of `.sql` files, which run on SQLite and on PostgreSQL.
- `transaction`: Write transactions, with one rollback policy.
- `tables`: Tables that the script CREATE of a file of statements defines.
- `pool`: Connections to one database, which the threads of a process share.
"""
