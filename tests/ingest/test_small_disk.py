"""A disk that is nearly full: hits are refused in time, what waits is loaded, and nothing that was accepted is lost."""

import json
import subprocess
import sys
from typing import Any

from tests.agent.tools import require_sandbox
from tests.warehouse.site import ROOT

MB = 1_000_000


def on_a_disk_of(size: int, scene: str) -> Any:
    """Run a function of `small_disk` where /mnt is a disk of `size` bytes, and return what it printed."""
    require_sandbox()
    disk = ["bwrap", "--dev-bind", "/", "/", "--size", str(size), "--tmpfs", "/mnt"]
    program = [sys.executable, "-m", "tests.ingest.small_disk", scene]
    ran = subprocess.run([*disk, *program], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_hot_log_of_19_mb_is_loaded_with_9_mb_of_free_space() -> None:
    outcome = on_a_disk_of(60 * MB, "drain")
    assert outcome.pop("size") > 19 * MB
    assert outcome == {"loaded": 67 * 1_200, "waiting": 0, "stored": 67 * 1_200}


def test_hits_are_refused_while_there_is_enough_space_to_load_those_before_them() -> None:
    outcome = on_a_disk_of(40 * MB, "refuse")
    assert "disk full: " in outcome["refusal"]
    assert outcome["accepted"] > 1_000
    assert (outcome["stored"], outcome["waiting"]) == (outcome["accepted"], 0)


def test_disk_that_others_fill_is_reported_and_hits_are_stored_once_there_is_space_again() -> None:
    outcome = on_a_disk_of(40 * MB, "others")
    assert outcome["fault"].startswith("disk full: ")
    assert outcome["shortage"].startswith("disk full: 0.0 MiB are free")
    assert outcome["stored"] == outcome["accepted"]


def test_service_on_a_full_disk_says_so_refuses_hits_and_recovers() -> None:
    outcome = on_a_disk_of(40 * MB, "serve")
    assert outcome["shown"]["hotLog"].startswith("disk full: 4.")
    status, retry_after, detail = outcome["refused"]
    assert (status, retry_after) == (503, "5")
    assert detail.startswith("disk full: 4.")
    assert (outcome["exported"], outcome["accepted"]) == (0, 202)
