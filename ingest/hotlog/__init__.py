"""The durable append of rows, and the detection of repeated events and posts.

- `writer`: The hot log's writer: rows of many posts in one durable commit, each post answered once it is on disk.
- `deduplication`: What was posted before: event ids and Idempotency-Keys, remembered in the hot log for seven days.
"""
