"""Attacks on a running service from outside, over loopback, each with the figures that it is measured by.

- `target`: the attacked service: its address, memory, open files and answers.
- `heads`: heads and fields after a body, larger than any honest client's.
- `unread`: answers that a client asks for and does not read.
- `bodies`: bodies that take much more memory than their bytes, and posts that never end.
- `slow_bodies`: posts without a key whose bodies arrive byte by byte.
- `distinct_paths`: beacons with long, distinct paths.
- `event_ids`: beacons with the event ids of a server's hits.
- `readiness`: many requests for `/readyz`.
- `doctor`: the time and memory that `doctor` takes for a day with 2,000,000 distinct paths.

`python -m tests.attacks.NAME` runs one and prints its figures. The tests of the same names run a small one in CI.
"""
