"""Durable storage of rows, detection of repeated events and posts, and the limit on beacons of several nodes.

- `beacon_shares`: Shares of the limit on beacons per address, for nodes that use one PostgreSQL database.
- `writer`: Writer of the hot log: rows of many posts in one durable commit, with the receipts sent after the commit.
- `deduplication`: Detection of repeated events and posts: event ids and Idempotency-Keys of the last seven days, in
  the hot log.
- `new_values`: Limit on the new paths, referring hosts and query parameters that hits without a key add to a project
  in a day.
- `ledger_store`: Rows of the ledger of imported logs: their creation, the key of their digests, and the deletion of old
  logs.
"""
