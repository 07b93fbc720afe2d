"""The environment variables and commands of `make`."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def make(*arguments: str, **environ: str) -> str:
    """Return what `make` prints without its last line end, in an environment of PATH and `environ`."""
    command = ["make", "--no-print-directory", *arguments]
    environ = {"PATH": os.environ["PATH"], **environ}
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=True).stdout.strip()


def test_uv_trusts_the_certificates_of_the_system_unless_the_variable_is_set() -> None:
    show = ['--eval=show: ; @echo "$$UV_SYSTEM_CERTS"', "show"]
    assert (make(*show), make(*show, UV_SYSTEM_CERTS="0")) == ("1", "0")


def test_programs_cache_their_bytecode_whatever_the_environment_has() -> None:
    show = ['--eval=show: ; @echo "$${PYTHONDONTWRITEBYTECODE-unset}"', "show"]
    assert make(*show, PYTHONDONTWRITEBYTECODE="1") == "unset"


def test_install_makes_the_environment_and_runs_nothing() -> None:
    printed = make("--dry-run", "--always-make", "install")
    assert "pip install" in printed
    assert "readership" not in printed.replace("-e .", "")


def test_install_caches_the_bytecode_of_the_program() -> None:
    compiled = shlex.split(make("--dry-run", "install").splitlines()[-1])
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
    assert shlex.split(make("--dry-run", "test", *chosen, **environ).splitlines()[-1])[-2:] == ["-m", tests]
