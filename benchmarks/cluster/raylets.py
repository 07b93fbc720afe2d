"""A Ray cluster with two raylets on loopback, each with one core, and with token authentication.

The cluster is a child process, `python -m benchmarks.cluster.raylets FOLDER [CLIENT_PORT]`, whose standard input ends
it. Ray ends the processes that it started by their ids.
"""

import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOSTS = ("127.0.0.2", "127.0.0.3")
"""Addresses of the raylets. Ray replaces 127.0.0.1 by an address of the machine that others can reach."""
END_S = 60
"""Time within which the cluster must end, in seconds."""
STORE_BYTES = 512 << 20
"""Size of a raylet's object store, in shared memory."""


@contextmanager
def cluster(client_port: int | None = None) -> Iterator[Mapping[str, str]]:
    """Yield the variables by which a program uses a new cluster: the address and the token.

    With a `client_port`, the cluster also has a client server, whose address is `client_address(client_port)`.
    """
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    quiet = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_DISABLE_IMPORT_WARNING": "1",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    }
    # Ray's sockets have long names below this folder, and a name may have 107 bytes.
    with (
        tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as folder,
        tempfile.TemporaryFile("w+") as errors,
    ):
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.cluster.raylets", folder, *([str(client_port)] if client_port else [])],
            cwd=ROOT,
            env={**os.environ, **token, **quiet},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            if not address:
                errors.seek(0)
                raise SystemExit(f"the cluster did not start: {errors.read()[-2_000:]}")
            yield {**token, **quiet, "READERSHIP_RAY": address}
        finally:
            process.stdin.close()
            try:
                process.wait(END_S)
            finally:
                process.kill()  # no effect on a process that has ended
                process.stdout.close()


def client_address(port: int) -> str:
    """Return the address of a cluster for a machine that is not part of it."""
    return f"ray://{HOSTS[0]}:{port}"


def main(folder: str, client_port: str | None = None) -> None:
    from ray.cluster_utils import Cluster  # noqa: PLC0415  # Ray may be missing

    os.environ["RAY_TMPDIR"] = folder
    options = {"num_cpus": 1, "object_store_memory": STORE_BYTES, "include_dashboard": False}
    head = {**options, "node_ip_address": HOSTS[0]}
    if client_port is not None:
        head["ray_client_server_port"] = int(client_port)
    own = Cluster(initialize_head=True, head_node_args=head)
    try:
        own.add_node(**options, node_ip_address=HOSTS[1])
        print(own.address, flush=True)
        sys.stdin.read()
    finally:
        own.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
