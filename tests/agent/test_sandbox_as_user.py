"""The box holds for a service that is no root, too. Where the tests are none themselves, all of the others show it."""

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
SOMEBODY = AGENT_UID + 1
SCRIPT = """
import json, os, subprocess, sys
from pathlib import Path
from agent.sandbox import bubblewrap
folder = Path(sys.argv[1])
for name in ("tree", "home", "run"):
    (folder / name).mkdir()
limits = bubblewrap.Limits(processes=40)
box = bubblewrap.Box(folder / "tree", folder / "home", folder / "run", {"HOME": "/home/agent"}, 60, limits)
attack = '''
import json, os, time
told = {"uid": os.getuid(), "caps": [line.split()[1] for line in open("/proc/self/status") if line[:3] == "Cap"]}
told["secret"] = os.path.exists(SECRET)
forks = 0
try:
    while forks < 300:
        if os.fork() == 0:
            time.sleep(1000)
        forks += 1
except OSError:
    pass
print(json.dumps({**told, "forks": forks}))
'''.replace("SECRET", repr(str(folder / "secret")))
(folder / "secret").write_text("secret")
others = [subprocess.Popen(["sleep", "1000"]) for _ in range(50)]
argv = bubblewrap.command(box, ["/usr/bin/python3", "-c", attack])
try:
    told = subprocess.run(argv, env={"PATH": bubblewrap.PATH}, capture_output=True, text=True)
finally:  # the test waits until no process has its output open
    for other in others:
        other.kill()
print(json.dumps([os.getuid(), bubblewrap.missing(), told.stdout and json.loads(told.stdout), told.stderr]))
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where another user may read our modules and write: pytest's own folders are closed to it."""
    with tempfile.TemporaryDirectory(prefix="readership-test-") as name:
        path = Path(name)
        path.chmod(0o755)
        (path / "agent/sandbox").mkdir(parents=True)
        for module in ("__init__.py", "errors.py", "sandbox/__init__.py", "sandbox/bubblewrap.py"):
            shutil.copy(Path(agent.__file__).parent / module, path / "agent" / module)
        (path / "job").mkdir()
        os.chown(path / "job", SOMEBODY, SOMEBODY)
        yield path


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.skipif(not SYSTEM_PYTHON.exists(), reason="our own interpreter may be closed to other users")
@pytest.mark.needs("bwrap", "prlimit", "setpriv")
def test_an_ordinary_user_makes_the_same_box(folder: Path) -> None:
    """Fifty processes of the same user outside do not count among the forty that the box may have."""
    done = subprocess.run(
        [
            *("setpriv", f"--reuid={SOMEBODY}", f"--regid={SOMEBODY}", "--clear-groups"),
            *(SYSTEM_PYTHON, "-c", SCRIPT, folder / "job"),
        ],
        cwd=folder,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    uid, reason, told, said = json.loads(done.stdout)
    assert (uid, reason, said) == (SOMEBODY, None, "")
    assert told["uid"] == 1000
    assert told["caps"] == ["0" * 16] * 5
    assert not told["secret"]
    assert 20 < told["forks"] < 40
