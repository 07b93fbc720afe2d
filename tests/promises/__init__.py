"""The promises of the README, each with the tests that it may not pass without. `make test` runs them all.

- A `202` response means stored, and survives `kill -9` and a power loss: `test_exactly_once`, `test_power_loss`.
- Every view is counted exactly once: `test_exactly_once`, `test_import_once`, `test_reclassify`.
- A view is in the next export: `tests/service/test_spine.py`; pages of one moment agree: `test_as_of`.
- Every number can be explained: `test_every_number`.
- The data is plain Parquet, and stays readable: `tests/docs/test_analysis.py`, `test_upgrade`.
- No address is stored: `test_addresses`.
- A lost store is refused, and `recover` goes on without it: `test_recovery`, `test_lost_control`.
"""
