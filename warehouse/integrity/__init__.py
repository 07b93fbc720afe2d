"""Checks that the stores are complete and agree with each other.

- `durability`: Nothing is deleted before what replaces it is synced, and nothing that was acknowledged goes missing
  unnoticed.
- `completeness`: Comparison of the hot log and the control database with the lake: is one of them missing, or older
  than the lake?
"""
