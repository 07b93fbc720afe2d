"""The command `move`, which moves the stores of a data folder to PostgreSQL and an object store.

- `command`: The command `move`: its options, progress and output.
- `places`: Old and new places of the stores.
- `moving`: Move of the stores, which continues after an interruption.
"""
