"""Durable storage of rows, and detection of repeated events and posts.

- `writer`: Writer of the hot log: rows of many posts in one durable commit, with the receipts sent after the commit.
- `deduplication`: Detection of repeated events and posts: event ids and Idempotency-Keys of the last seven days, in
  the hot log.
"""
