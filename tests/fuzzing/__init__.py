"""Fuzzing: random bytes, guided by coverage, for each parser that reads what strangers send or a disk can damage.

- `targets`: the functions that are fuzzed. Each takes bytes, and raises only if it found a fault.
- `seeds`: the first inputs of each target.
- `corpus/TARGET`: inputs that earlier runs found, one for each part of the code that they reach; all are in the tests.
- `__main__`: `python -m tests.fuzzing [TARGET ...] [--seconds N]` runs atheris (libFuzzer for Python) on each target.
"""
