"""`demo` fills its own data folder, serves at its own port, and runs beside a service."""

import json
import os
import re
import socket
import subprocess
import time
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from api import data_folder, settings
from api.accounts import keys, one_time_links
from api.cli.demo import sample_views
from api.cli.demo.command import show_demo
from api.cli.main import main
from sample_data.generate_posts import OTHER_ADDRESSES
from sample_data.traffic import READERS
from tests.api.cli.console import DAY_S, EXPECTED, KEY, in_background
from tests.processes.running import COMMAND
from tests.processes.waiting import until
from tests.warehouse.site import ROOT
from warehouse.control import database

README = (ROOT / "README.md").read_text(encoding="utf-8")
CRAWLERS = {reader.user_agent for reader in READERS if reader.group == "crawlers"}
[OWN_SITE] = re.findall(r"## Your own site\n\n((?:    .+\n)+)", README)
TRIED = re.findall(r"    (curl .+\n(?:      .+\n)*)    (\{.+\})\n", README)
"""Commands of the README for a running demo, and their answers."""


@pytest.mark.long
def test_each_start_of_a_demo_prints_a_new_key_for_a_day_and_a_new_link_that_signs_in_the_owner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = settings.read({}, tmp_path / "data")
    data_folder.prepare(chosen)
    engine = database.connect(chosen.database_url)

    def start() -> tuple[keys.BearerKey, str]:
        show_demo(chosen, "http://127.0.0.1:8001", "http://127.0.0.1:8001")
        printed = capsys.readouterr()
        [token] = set(KEY.findall(printed.out))
        [link] = re.findall(r"http://127\.0\.0\.1:8001/welcome/([^\s?]+)", printed.err)
        return keys.Keyring(engine).look_up(token), link

    first, first_link = start()
    assert (first.project, first.expires_s) == ("demo", first.created_s + DAY_S)
    others = {key.id for key in keys.list_all(engine)} - {first.id}
    of_an_older_release = keys.create(engine, "demo", "demo", "write", None, first.created_s - DAY_S)[0]
    own = keys.create(engine, "demo", "demo", "read", None, first.created_s - DAY_S)[0]
    second, link = start()
    assert {key.id for key in keys.list_all(engine)} == others | {first.id, own.id, second.id}
    assert of_an_older_release.id not in {key.id for key in keys.list_all(engine)}

    now_s = int(time.time())
    assert one_time_links.redeem(engine, first_link, now_s) is None
    redeemed = one_time_links.redeem(engine, link, now_s)
    assert redeemed is not None
    assert redeemed.purpose == "sign_in"
    assert redeemed.user is not None
    assert (redeemed.user.name, redeemed.user.role, redeemed.user.has_password) == ("owner", "owner", False)
    engine.close()


def test_demo_has_its_own_data_folder_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the command with a port in use, which ends the command after the data folder is created."""
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for options, environ, folder in (
            ([], {"READERSHIP_DATA": None}, "data-demo"),
            ([], {"READERSHIP_DATA": "elsewhere"}, "elsewhere"),
            (["--data", "given"], {"READERSHIP_DATA": "other"}, "given"),
        ):
            done = CliRunner().invoke(main, [*options, "demo", "--port", port], env=environ)
            assert "cannot listen" in done.stderr
            assert (tmp_path / folder).is_dir()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data-demo", "elsewhere", "given"]


def test_demo_has_its_own_port() -> None:
    matches = {
        command: re.search(
            r"--port .*?\[default:\s+(\d+)", CliRunner().invoke(main, [command, "--help"]).stdout, re.DOTALL
        )
        for command in ("serve", "demo")
    }
    assert {command: match and match[1] for command, match in matches.items()} == {"serve": "8000", "demo": "8001"}


@pytest.mark.long
def test_commands_of_the_readme_work_beside_a_demo_when_pasted(tmp_path: Path) -> None:
    """Run the commands of the README beside the data folder of a demo, which a running demo locks."""
    chosen = settings.read({}, tmp_path / "data-demo")
    data_folder.prepare(chosen)
    show_demo(chosen, "http://127.0.0.1:8001", "http://127.0.0.1:8001")
    *before, serve = [line.strip().replace(".venv/bin/readership", COMMAND) for line in OWN_SITE.splitlines()]
    script = "\n".join(["set -e", "unset READERSHIP_DATA", *before])
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert KEY.search(done.stdout)
    assert re.fullmatch(rf"{re.escape(COMMAND)} serve --workers \d+", serve)
    listed = subprocess.run([COMMAND, "project", "list"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert re.findall(r'"id":"([^"]+)"', listed.stdout) == ["docs"]


@pytest.mark.long
@pytest.mark.needs("curl")
def test_demo_prints_an_export_and_commands_that_work_when_pasted_like_those_of_the_readme(tmp_path: Path) -> None:
    assert len(TRIED) == 2
    shown = tmp_path / "shown"
    address = re.compile(r"http://127\.0\.0\.1:\d+(?=/v1/classify)")
    with (
        shown.open("wb") as output,
        in_background("--data", tmp_path / "data", "demo", "--port", "0", stdout=output) as runs,
    ):
        url = until(lambda: runs() and address.search(shown.read_text()))[0]
        until(lambda: runs() and _is_up(url))
        text = shown.read_text()
        environ = {**os.environ, "KEY": KEY.search(text)[0]}  # type: ignore[index]
        for command, answer in TRIED:
            shell = ["sh", "-c", command.replace("http://127.0.0.1:8001", url)]
            done = subprocess.run(shell, env=environ, check=True, capture_output=True, text=True, timeout=60)
            assert done.stdout == answer
        pasted = subprocess.run(
            ["bash"], check=False, input=text[text.index("# ") :], capture_output=True, text=True, timeout=60
        )
    assert all(str(row["path"]) in text for row in EXPECTED["views"][:5])
    posted = [json.loads(line) for line in sample_views.POSTS.read_text(encoding="utf-8").splitlines()]
    is_bot = [
        post["userAgent"] in CRAWLERS or post.get("address", "").startswith(OTHER_ADDRESSES)
        for post in posted
        if post["project"] == "demo" and post.get("status") != 404
    ]
    assert f"{EXPECTED['totals']['total'] + is_bot.count(False):,}" in text
    assert pasted.stdout.count('"accepted":1') == 2
    assert '"path":"/docs/hello","human":1,"ai":2,"total":3' in pasted.stdout
    assert '"agent":"GPTBot"' in pasted.stdout


def _is_up(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz").status_code == 200
    except httpx.TransportError:
        return False
