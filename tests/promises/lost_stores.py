"""A data folder whose stores a test removes, or replaces by older copies."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.processes import forked
from tests.processes.running import PROJECT, READY_S, SERVING, new_key, readership
from tests.warehouse.site import Site, some_rows

LINE = '192.0.2.7 - - [15/Sep/2026:12:00:{:02} +0000] "GET /{} HTTP/1.1" 200 5 "-" "Mozilla/5.0 (X11) Firefox/155.0"\n'
COUNT = "SELECT count(*) AS hits, (SELECT sum(views) FROM daily_views) AS views FROM hits"


class Folder:
    """A data folder with a project, and commands over it."""

    def __init__(self, parent: Path, key: str) -> None:
        self.data, self.copies, self.log, self.key = parent / "data", parent / "copies", parent / "access.log", key

    def copied(self, parent: Path) -> "Folder":
        """Return a copy in another, empty folder."""
        shutil.copytree(self.data.parent, parent, dirs_exist_ok=True)
        return Folder(parent, self.key)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        arguments = ("--data", str(self.data), *arguments)
        return self._serve(arguments) if arguments[2] in SERVING else readership(*arguments)

    def _serve(self, arguments: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        """Return the result of a command that serves unless the folder is refused."""
        log = self.copies / "serve.log"
        log.write_text("")
        status = forked.start(forked.PROGRAM, arguments, log=log).wait(READY_S)
        return subprocess.CompletedProcess(arguments, status, "", log.read_text())

    def json(self, *arguments: str) -> Any:
        ran = self.run(*arguments)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    def refused(self, *arguments: str) -> str:
        """Run a command that is refused, and return its only line of output."""
        ran = self.run(*arguments)
        assert ran.returncode == 1, ran.stdout
        assert ran.stderr.count("\n") == 1, ran.stderr
        return ran.stderr

    def counts(self) -> tuple[int, int]:
        [answer] = self.json("sql", COUNT)
        return answer["hits"], answer["views"]

    def copy(self, name: str) -> None:
        shutil.copy(self.data / name, self.copies / name)

    def restore(self, name: str) -> None:
        self.lose(name)
        shutil.copy(self.copies / name, self.data / name)

    def lose(self, name: str) -> None:
        for file in self.data.glob(f"{name}*"):
            file.unlink()


def filled(parent: Path) -> Folder:
    """Return a folder with 33 hits in the lake, and copies of its stores from before 30 of them were imported."""
    folder = Folder(parent, new_key(parent / "data"))
    folder.copies.mkdir()
    folder.log.write_text("".join(LINE.format(number, number) for number in range(30)))
    site = Site(folder.data)
    site.post(*some_rows(0, 3))
    site.close()
    folder.json("flush")
    folder.copy("hot.sqlite")
    folder.copy("control.sqlite")
    assert folder.json("import", PROJECT, str(folder.log))["page_views"] == 30
    return folder
