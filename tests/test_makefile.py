"""The environment variables and commands of `make`."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SHOW = 'show: ; @echo "$$UV_SYSTEM_CERTS"'


@pytest.mark.parametrize(("chosen", "expected"), [({}, "1"), ({"UV_SYSTEM_CERTS": "0"}, "0")])
def test_uv_trusts_the_certificates_of_the_system_unless_the_variable_is_set(
    chosen: dict[str, str], expected: str
) -> None:
    command = ["make", "--no-print-directory", f"--eval={SHOW}", "show"]
    environ = {"PATH": os.environ["PATH"], **chosen}
    assert (
        subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=True).stdout.strip()
        == expected
    )


def test_programs_cache_their_bytecode_whatever_the_environment_has() -> None:
    command = ["make", "--no-print-directory", '--eval=show: ; @echo "$${PYTHONDONTWRITEBYTECODE-unset}"', "show"]
    environ = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
    printed = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=True).stdout
    assert printed == "unset\n"


def test_install_makes_the_environment_and_runs_nothing() -> None:
    command = ["make", "--no-print-directory", "--dry-run", "--always-make", "install"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "pip install" in printed
    assert "readership" not in printed.replace("-e .", "")


def test_install_caches_the_bytecode_of_the_program() -> None:
    command = ["make", "--no-print-directory", "--dry-run", "install"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    compiled = shlex.split(printed.splitlines()[-1])
    assert compiled[1:3] == ["-m", "compileall"]
    assert {"api", "agent", "ingest", "warehouse"} <= {*compiled}


@pytest.mark.parametrize(
    ("environ", "chosen", "tests"),
    [
        ({}, (), "not long and not night"),
        ({"CI": "true"}, (), "not night"),
        ({"CI": "1"}, ("TESTS=not night and not installed",), "not night and not installed"),
        ({"CI": "1"}, ("TESTS=",), ""),
    ],
)
def test_long_tests_run_in_ci_and_all_tests_on_request(
    environ: dict[str, str], chosen: tuple[str, ...], tests: str
) -> None:
    command = ["make", "--no-print-directory", "--dry-run", "test", *chosen]
    environ = {"PATH": os.environ["PATH"], **environ}
    printed = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=True).stdout
    assert shlex.split(printed.splitlines()[-1])[-2:] == ["-m", tests]
