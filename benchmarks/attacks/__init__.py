"""Attacks on a service: what a stranger can make it store, and what that costs its owner.

- `long_paths`: ever new paths of any length: each report, page and maintenance command over them.
"""
