"""The whole path of a posted hit: it is stored, classified, counted and exported."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from api import settings
from tests.processes.running import Running, new_key, readership_process
from tests.processes.waiting import until
from warehouse.control import database, projects
from warehouse.tables import TABLES

GPTBOT = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; GPTBot/1.3; +https://openai.com/gptbot"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"


def test_hit_is_in_the_next_export_and_still_after_a_restart(start: Callable[..., Running]) -> None:
    running = start()
    hits = [{"path": "/a", "userAgent": agent} for agent in (GPTBOT, FIREFOX, FIREFOX, GOOGLEBOT)]
    assert running.post(hits).json() == {"accepted": 4, "duplicates": 0, "rejected": []}
    expected = {
        "totals": {"human": 2, "ai": 1, "total": 3},
        "views": [{"path": "/a", "human": 2, "ai": 1, "total": 3}],
        "hasMore": False,
        "measured": {"human": "all", "ai": "all", "bot": "all"},
    }
    assert running.get() == expected
    assert running.stop() == 0
    running.start()
    assert running.get() == expected


@pytest.mark.long
def test_service_does_not_start_with_a_broken_table_and_names_the_file(tmp_path: Path) -> None:
    data = tmp_path / "data"
    new_key(data)
    commit = data / "lake" / "hits" / "_delta_log" / "00000000000000000000.json"
    commit.write_text("junk")
    ended = readership_process("--data", str(data), "serve", "--port", "0")
    assert ended.returncode == 1
    assert f"the table {data}/lake/hits is incomplete: {commit} is not JSON. Restore" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "leaked" not in ended.stderr


@pytest.mark.long
def test_lost_commit_is_503_and_a_damaged_file_is_500_with_the_id_of_the_request(start: Callable[..., Running]) -> None:
    running = start()
    for number in range(2):
        running.post({"path": f"/{number}", "userAgent": GPTBOT})
        assert running.run("flush").returncode == 0
    commit = newest_commit(running.data, "hits")
    lost = commit.rename(running.data / "lost")
    answer = httpx.get(running.views, headers=running.auth)
    assert (answer.status_code, answer.json()["type"]) == (503, "/docs#data-incomplete")
    assert "lake/hits is incomplete" in answer.json()["detail"]
    until(lambda: httpx.get(f"{running.url}/readyz").status_code == 503)  # the answer is cached for a second
    ready = httpx.get(f"{running.url}/readyz")
    assert "it is at version 1, and was stored up to version 2" in ready.json()["checks"]["lake"]
    for command in (["sql", "SELECT count(*) FROM hits"], ["flush"], ["doctor"]):
        refused = running.run(*command)
        assert refused.returncode == 1
        assert "lake/hits is incomplete" in refused.stdout + refused.stderr
    lost.rename(commit)
    until(lambda: httpx.get(f"{running.url}/readyz").status_code == 200)
    for file in (running.data / "lake").glob("*/*=*/*.parquet"):
        file.write_bytes(b"junk")
    answer = httpx.get(running.views, headers=running.auth)
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert answer.json()["requestId"] == answer.headers["x-request-id"]
    assert "lake" not in answer.text


@pytest.mark.long
def test_lake_restored_from_an_older_copy_gets_the_retained_batches_when_its_loss_is_accepted(tmp_path: Path) -> None:
    running = Running(tmp_path / "data").start()
    running.post({"path": "/in-the-copy", "userAgent": GPTBOT})
    assert running.stop() == 0
    shutil.copytree(running.data / "lake", tmp_path / "copy")
    running.start().post({"path": "/retained", "userAgent": GPTBOT})
    assert running.stop() == 0
    shutil.rmtree(running.data / "lake")
    shutil.copytree(tmp_path / "copy", running.data / "lake")
    refused = running.run("serve")
    assert refused.returncode == 1
    assert "readership recover" in refused.stderr
    listed = json.loads(running.run("recover").stdout)
    assert {Path(loss["store"]).name for loss in listed} == {spec.name for spec in TABLES}
    assert all(loss["fault"].startswith("it is at version ") for loss in listed)
    assert json.loads(running.run("recover").stdout) == listed  # the list changed nothing
    assert running.run("recover", "--accept-loss").returncode == 0
    assert json.loads(running.run("recover").stdout) == []
    assert running.run("doctor").returncode == 0
    running.start().post({"path": "/new", "userAgent": GPTBOT})
    assert {each["path"]: each["total"] for each in running.get()["views"]} == {
        "/in-the-copy": 1,
        "/retained": 1,  # loaded less than ten minutes before the loss
        "/new": 1,
    }
    assert running.stop() == 0


def newest_commit(data: Path, table: str) -> Path:
    return max((data / "lake" / table / "_delta_log").glob("*.json"))


def test_interrupted_deletion_of_a_project_can_be_repeated_and_leaves_nothing(service: Running) -> None:
    site, hit = f"{service.url}/v1/analytics/doomed", {"path": "/a", "userAgent": GPTBOT}
    key = {"Authorization": f"Bearer {new_key(service.data, 'doomed')}"}
    assert httpx.post(f"{site}/hits", json=hit, headers=key).status_code == 202
    engine = database.connect(settings.read({}, service.data).database_url)
    projects.begin_deletion(engine, "doomed")
    engine.close()
    assert service.run("project", "create", "doomed").returncode == 1
    assert service.run("project", "delete", "doomed", "--yes").returncode == 0
    key = {"Authorization": f"Bearer {new_key(service.data, 'doomed')}"}
    assert httpx.get(f"{site}/views", headers=key).json()["totals"] == {"human": 0, "ai": 0, "total": 0}
