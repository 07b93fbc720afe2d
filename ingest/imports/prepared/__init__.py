"""Chunks that are ready to be stored: their rows are in memory or in staged files.

- `preparation`: Classify the hits of a parsed chunk, and write the rows of a large chunk to files.
- `in_workers`: Parse and prepare the chunks of a log in workers of `warehouse.batch`, several at a time.
"""
