"""A small file system in memory that tests fill."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

BLOCK_BYTES = 4096


@dataclass(frozen=True)
class SmallDisk:
    """The file system at `folder`."""

    folder: Path

    def fill(self, leave_bytes: int = 0) -> None:
        """Use all free space except `leave_bytes`. A repeated call uses the space that has become free since."""
        filling = self.folder / "filling"
        with filling.open("ab", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(BLOCK_BYTES))
            except OSError as error:
                assert error.strerror == "No space left on device"  # noqa: PT017  # the end of the loop
        os.truncate(filling, filling.stat().st_size - leave_bytes)

    def free(self) -> None:
        """Free the space that `fill` used."""
        (self.folder / "filling").unlink()


def may_mount() -> bool:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    return subprocess.run(["unshare", "--mount", "true"], check=False).returncode == 0


@contextmanager
def mounted(folder: Path, mebibytes: int) -> Iterator[SmallDisk]:
    """Mount an empty file system for the duration of the `with` block.

    Every process sees it: a mount namespace of this thread would exclude the threads that DuckDB and Delta started.
    """
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", folder], check=True)
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
