"""Checks that the stores are complete and agree with each other.

- `durability`: Nothing is deleted before its replacement is synced, and a loss of acknowledged rows is an error.
- `completeness`: Comparison of the hot log and the control database with the lake, which finds a missing or older one.
"""
