"""The wheel that `pip install .` builds contains every file that the program reads."""

import os
import re
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.processes.waiting import until
from tests.warehouse.site import ROOT

PACKAGES = ("agent", "api", "ingest", "warehouse")
RUN = "from api.cli.main import run; run()"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the contents of the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "installed")
    return folder / "installed"


@pytest.mark.long
def test_every_file_beside_the_code_is_in_the_wheel(installed: Path) -> None:
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*") if path.is_file()]
    names = [str(path.relative_to(ROOT)) for path in files if "__pycache__" not in path.parts]
    assert len(names) > 100
    sample = tuple(f"sample_data/{name}" for name in ("access.log", "posts.ndjson", "robots.txt", "signing_key.json"))
    assert [name for name in (*names, *sample) if not (installed / name).is_file()] == []


def is_ready(url: str) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(f"{url}/readyz").status_code == 200
    return False


@pytest.mark.long
def test_the_demo_runs_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": str(installed), "PYTHONSAFEPATH": "1"}
    where = subprocess.run(
        [sys.executable, "-c", "import api; print(api.__file__)"],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(where.stdout.strip()).is_relative_to(installed)
    shown = tmp_path / "shown"
    with shown.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", RUN, "--data", tmp_path / "data", "demo", "--port", "0"],
            env=environ,
            stdout=output,
            stderr=output,
        )
    try:
        url = until(lambda: re.search(r"http://127\.0\.0\.1:\d+(?=/v1/classify)", shown.read_text()))[0]
        until(lambda: is_ready(url))
    finally:
        process.terminate()
        assert process.wait(60) == 0, shown.read_text()
    assert "Who reads the sample site" in shown.read_text()
