"""Durable storage of rows, and detection of repeated events and posts.

- `writer`: Writer of the hot log: rows of many posts in one durable commit, with the receipts sent after the commit.
- `tables`: Tables of event ids and Idempotency-Keys in the hot log, and the statements on them.
- `ledger_tables`: Table of the ledger of imported logs in the hot log, and the statements on it.
- `beacon_shares`: Shares of the limit on beacons of an address, which nodes with one PostgreSQL database take from it.
- `deduplication`: Detection of repeated events and posts: event ids and Idempotency-Keys of the last seven days, in
  the hot log.
"""
