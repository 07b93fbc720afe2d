"""Deterministic simulation: one process runs the product's own operations, and a seed decides every interleaving.

- `clock`: The simulated clock of Python, SQLite and delta-rs: a library in C that is loaded before all others.
- `machine`: The simulated machine: sleeps, threads, random names, and a disk that records what was synced.
- `tasks`: Operations that pause at each step of the product and at each sync, and can be killed there.
- `model`: What must be counted, as a dictionary: acknowledged hits, and hits of operations that have not ended.
- `node`: One node: its connections, its writer of posts, its readers, and its start from the files of its folder.
- `operations`: The operations that a step may start, each with its effect on the model.
- `recoveries`: Recoveries from a lost store, by the command `readership recover --accept-loss`.
- `checks`: Comparisons of reports, SQL views, plain DuckDB, `doctor` and the files with the model.
- `episode`: A sequence of steps in a new folder, chosen by the seed, and its trace.
"""
