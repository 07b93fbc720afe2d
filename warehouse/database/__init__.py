"""Statements and connections for databases on SQLite and PostgreSQL, below SQLAlchemy's engine.

- `psycopg_connection`: Connections of psycopg to a PostgreSQL server, and the lock by which they are counted.
- `postgresql`: Connection to a PostgreSQL server that opens again after it was lost.
- `advisory_lock`: Advisory lock of a PostgreSQL server, which one connection at a time has.
- `statements`: SQL statements that SQLAlchemy Core compiles for each database.
"""
