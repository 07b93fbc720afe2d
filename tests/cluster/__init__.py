"""Several nodes with one PostgreSQL database and one lake, whose processes are killed and paused at random.

`python -m tests.cluster.rounds` runs the rounds; pytest runs a short one: `tests/nodes/test_rounds_over_nodes.py`. The
modules are here, and not in `benchmarks`, because they use the servers and the forked processes of the tests.

- `processes`: Processes of a node: its service and its commands, which can be killed, paused and continued.
- `stores`: PostgreSQL and the object store, which can be unreachable for a while.
- `cluster`: The nodes and their stores.
- `expected`: The number of hits of each path that was posted or imported.
- `senders`: Clients that post hits, and repeat those with an unknown outcome.
- `readers`: Readers that compare the tables and the exports all the time.
- `log_imports`: Logs that grow, imported on all nodes at once.
- `faults`: Random faults: kills, pauses, lost locks, and outages of the stores.
- `exactness`: Comparison of all that is stored with the hits that are expected.
- `outages`: Outages of the object store and of PostgreSQL that last a minute.
- `rounds`: The command, and one round.
"""
