"""Sandbox of a service that does not run as root. If the tests do not run as root, the other tests cover this."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import agent
from agent.sandbox.bubblewrap import AGENT_UID

SYSTEM_PYTHON = Path("/usr/bin/python3")
OTHER_USER = AGENT_UID + 1
SCRIPT = """
import json, os, subprocess, sys
from pathlib import Path
from agent.sandbox import bubblewrap
folder = Path(sys.argv[1])
for name in ("tree", "home", "run"):
    (folder / name).mkdir()
limits = bubblewrap.Limits(processes=40)
box = bubblewrap.Sandbox(folder / "tree", folder / "home", folder / "run", {"HOME": "/home/agent"}, 60, limits)
attack = '''
import json, os, time
report = {"uid": os.getuid(), "caps": [line.split()[1] for line in open("/proc/self/status") if line[:3] == "Cap"]}
report["secret"] = os.path.exists(SECRET)
forks = 0
try:
    while forks < 300:
        if os.fork() == 0:
            time.sleep(1000)
        forks += 1
except OSError:
    pass
print(json.dumps({**report, "forks": forks}))
'''.replace("SECRET", repr(str(folder / "secret")))
(folder / "secret").write_text("secret")
others = [subprocess.Popen(["sleep", "1000"]) for _ in range(50)]
argv = bubblewrap.command(box, ["/usr/bin/python3", "-c", attack])
try:
    done = subprocess.run(argv, env={"PATH": bubblewrap.PATH}, capture_output=True, text=True)
finally:  # the test waits until every process has closed its output
    for other in others:
        other.kill()
print(json.dumps([os.getuid(), bubblewrap.unavailable_reason(), done.stdout and json.loads(done.stdout), done.stderr]))
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder in which another user can read our modules and write; that user cannot read pytest's folders."""
    with tempfile.TemporaryDirectory(prefix="readership-test-") as name:
        path = Path(name)
        path.chmod(0o755)
        (path / "agent/sandbox").mkdir(parents=True)
        for module in (
            "__init__.py",
            "errors.py",
            "sandbox/__init__.py",
            "sandbox/bubblewrap.py",
            "sandbox/seccomp.py",
        ):
            shutil.copy(Path(agent.__file__).parent / module, path / "agent" / module)
        (path / "job").mkdir()
        os.chown(path / "job", OTHER_USER, OTHER_USER)
        yield path


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.skipif(not SYSTEM_PYTHON.exists(), reason="other users may not be able to run our interpreter")
@pytest.mark.needs("bwrap", "prlimit", "setpriv")
def test_sandbox_of_another_user_has_the_same_limits(folder: Path) -> None:
    """Run fifty processes of the same user outside of the sandbox; its limit of forty processes does not count them."""
    done = subprocess.run(
        [
            *("setpriv", f"--reuid={OTHER_USER}", f"--regid={OTHER_USER}", "--clear-groups"),
            *(SYSTEM_PYTHON, "-c", SCRIPT, folder / "job"),
        ],
        cwd=folder,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    uid, reason, report, errors = json.loads(done.stdout)
    assert (uid, reason, errors) == (OTHER_USER, None, "")
    assert report["uid"] == 1000
    assert report["caps"] == ["0" * 16] * 5
    assert not report["secret"]
    assert 20 < report["forks"] < 40
