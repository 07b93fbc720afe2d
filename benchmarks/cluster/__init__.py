"""Batch work in a Ray cluster on this machine.

- `raylets`: a cluster of two raylets.
- `against_local`: import and rebuild with one and two workers in the cluster, against processes of this machine.
"""
