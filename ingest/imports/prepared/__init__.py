"""Chunks that are ready to be stored: their rows are in memory or in staged files.

- `asset_loads`: Loads of assets by day and visitor, as evidence that people were there.
- `downloads`: Downloads of people and AI, as rows of `events`.
- `requests`: All requests of a log, as rows of `requests`.
- `preparation`: Classification of the hits of a parsed chunk, and staging of the rows of a large chunk.
- `in_workers`: Parsing and preparation of the chunks of a log in workers of `warehouse.batch`, several at a time.
"""
