"""Run the simulation: `python -m tests.simulation --seed 1 --steps 1000000`."""

import argparse
import os
import shutil
import sys
import tempfile
import time
import traceback
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tests.simulation import clock

if TYPE_CHECKING:
    from tests.simulation.machine import Machine

EPISODE_STEPS = 3_000
"""Number of steps after which the next episode begins in a new folder, with the next seed."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="seed of the first episode")
    parser.add_argument("--steps", type=int, default=10_000, help="number of steps in all")
    parser.add_argument("--nodes", type=int, choices=(1, 2), default=1)
    arguments = parser.parse_args()
    simulated = clock.load()
    if simulated is None:
        clock.run_with_simulated_clock(sys.argv[1:])
    from tests.simulation.machine import Machine  # noqa: PLC0415  # before the product is imported

    machine = Machine(simulated)
    machine.install()
    return _run(machine, arguments.seed, arguments.steps, arguments.nodes)


def _run(machine: "Machine", seed: int, steps: int, nodes: int) -> int:
    """Run episodes until there were enough steps; return the exit status."""
    from tests.simulation import episode  # noqa: PLC0415  # after `install`
    from tests.stores import postgresql  # noqa: PLC0415

    episode.use_small_limits()
    memory, done = Path("/dev/shm"), 0
    with postgresql.Server.running(postgresql.OPTIONS) if nodes > 1 else nullcontext() as server:
        while done < steps:
            begun_s, steps_max = time.process_time(), min(EPISODE_STEPS, steps - done)
            folder = Path(tempfile.mkdtemp(prefix="readership-simulation-", dir=memory if memory.is_dir() else None))
            urls = [postgresql.new_database(server.folder)] * nodes if server else []
            current = episode.Episode(seed, machine, folder, urls)
            try:
                current.start()
                current.steps(steps_max)
            except BaseException:  # noqa: BLE001  # printed
                print(*current.trace, traceback.format_exc(), sep="\n")
                print(f"seed {seed}, step {current.count}, trace {current.digest[:16]}; the files are in {folder}.")
                print("To repeat it:")
                print(f"python -m tests.simulation --seed {seed} --steps {steps_max} --nodes {nodes}", flush=True)
                for node in current.nodes:  # a server waits for the end of its connections
                    with suppress(BaseException):
                        node.stop()
                return 1
            took_s = time.process_time() - begun_s
            print(f"seed {seed}: {current.count} steps, {took_s:.0f} s, trace {current.digest[:16]}", flush=True)
            seed, done = seed + 1, done + current.count
            shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # after a fault, the thread of a node's writer would wait for ever
