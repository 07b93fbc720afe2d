"""Numbers of rounds of the long tests with random kills or random data: all of them in CI, a sixth elsewhere."""

import os


def rounds(number: int) -> int:
    """Return how many of `number` rounds a test runs here."""
    return number if os.environ.get("CI") else -(-number // 6)
