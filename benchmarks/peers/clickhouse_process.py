"""ClickHouse in process (chdb), run in an environment of its own, because chdb and its pandas are not dependencies.

`PYTHON clickhouse_process.py FOLDER` reads a query from each line, as a JSON string, and writes a line with a JSON
object: the time of the query in ms, and its rows. The module imports nothing of the project.
"""

import json
import sys
import time

from chdb.session import Session  # type: ignore[import-not-found]


def main(folder: str) -> None:
    session = Session(folder)
    for line in sys.stdin:
        began = time.perf_counter()
        result = session.query(json.loads(line), "JSONCompact").data()
        took_ms = (time.perf_counter() - began) * 1000
        rows = json.loads(result)["data"] if result else []
        sys.stdout.write(json.dumps({"ms": took_ms, "rows": rows}) + "\n")
        sys.stdout.flush()
    session.close()


if __name__ == "__main__":
    main(sys.argv[1])
