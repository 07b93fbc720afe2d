"""The long checks that no change waits for: `make night`, or `make night STEPS="soak fuzzing"`.

- `__main__`: runs the steps one after another, and prints their results.
- `soak`: a service under a constant mixed load for an hour.
- `covered`: the lines and branches that no test runs, and their numbers by package.
- `mutants`: random faults in a copy of the product, and the tests that catch them.
- `slower`: names the figures of the benchmarks that became worse by a fifth since the run before.
"""
