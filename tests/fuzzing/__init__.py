"""Fuzzing: random bytes, guided by coverage, for each parser that reads what strangers send or a disk can damage.

- `targets`: the functions that are fuzzed. Each takes bytes, and raises an error only for a fault.
- `seeds`: the first inputs of each target.
- `corpus/TARGET`: inputs from earlier runs, each of which reaches other code; the tests read all of them.
- `__main__`: `python -m tests.fuzzing [TARGET ...] [--seconds N]` runs atheris (libFuzzer for Python) on each target.
"""
