"""Run the tests that failed in the last run of pytest once more, alone and one after the other.

`.ci/run` calls it after `make test` has failed. The exit status is 0 if there were at most MAX_FAILED and all of them
pass now. Such a test depends on chance, which is a fault of the test or of the product: its first failure stays in the
output, and its name is the last thing that is printed.
"""

import json
import subprocess
import sys
from pathlib import Path

MAX_FAILED = 3
LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")


def main() -> int:
    failed = sorted(json.loads(LAST_FAILED.read_text())) if LAST_FAILED.exists() else []
    if not failed:
        print("No test failed: an earlier step did.")
        return 1
    if len(failed) > MAX_FAILED:
        print(f"{len(failed)} tests failed, more than {MAX_FAILED}: none runs again.")
        return 1
    again = [sys.executable, "-m", "pytest", "--last-failed", "--last-failed-no-failures", "none"]
    if status := subprocess.run(again, check=False).returncode:
        return status
    print("FAILED ONCE, AND PASSED ALONE. Find out why:", *failed, sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
