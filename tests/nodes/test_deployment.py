"""The files of the reference deployment: nginx before two nodes, and the units of systemd."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path

import httpx
import pytest
from click import Context

from api import settings
from api.cli.main import main
from tests.processes.running import Running
from tests.processes.waiting import until
from tests.programs import find
from tests.stores.postgresql import new_database

DEPLOY = Path(__file__).parents[2] / "deploy"
HUMAN = "Mozilla/5.0 (X11; Linux x86_64; rv:120.0) Gecko/20100101 Firefox/120.0"


@pytest.fixture
def nodes(bucket: str, postgresql: str, tmp_path: Path) -> Iterator[list[Running]]:
    environ = {
        "READERSHIP_LAKE": f"{bucket}/deployment",
        "READERSHIP_DATABASE_URL": new_database(postgresql),
        "READERSHIP_JOBS_AT_ONCE": "0",
        "READERSHIP_BEACONS_PER_MINUTE": "1",
    }
    first = Running(tmp_path / "first", environ=environ).start()
    try:
        second = Running(tmp_path / "second", environ=environ, key=first.key).start()
        yield [first, second]
        second.stop()
    finally:
        assert first.stop() == 0


@pytest.fixture
def proxy(nodes: list[Running], closed_port: int, tmp_path: Path) -> Iterator[str]:
    """Yield the URL of nginx with the configuration of the deployment, without TLS."""
    tmp_path.chmod(0o755)
    listen = f"listen 127.0.0.1:{closed_port} reuseport"
    text = (DEPLOY / "nginx.conf").read_text().replace("listen 443 ssl", listen)
    for number, node in enumerate(nodes, start=1):
        text = text.replace(f"node{number}.internal:8000", node.url.removeprefix("http://"))
    text = re.sub(r"\n *ssl_\w+ .*;", "", text)
    temporary = "".join(
        f"{name}_temp_path {tmp_path}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;" if os.getuid() == 0 else ""
    configuration, log = tmp_path / "nginx.conf", tmp_path / "error.log"
    configuration.write_text(
        f"{user} daemon off; pid {tmp_path}/nginx.pid; events {{}} http {{ access_log off; {temporary} {text} }}"
    )
    with subprocess.Popen([str(find("nginx")), "-c", str(configuration), "-e", str(log)]) as process:
        url = f"http://127.0.0.1:{closed_port}"
        try:
            until(lambda: answers(url))
            yield url
        finally:
            process.terminate()


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/healthz", timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def beacon_statuses(proxy: str) -> set[int]:
    """Return the statuses of more beacons than the limit, whose sender claims another address each time."""
    hit = {"path": "/beacon"}
    headers = [{"Origin": "https://site.example", "X-Forwarded-For": f"192.0.2.{number}"} for number in range(4)]
    return {httpx.post(f"{proxy}/v1/analytics/site/hits", json=hit, headers=each).status_code for each in headers}


@pytest.mark.long
@pytest.mark.needs("nginx")
def test_proxy_sends_each_post_to_one_node_and_goes_on_without_a_node(nodes: list[Running], proxy: str) -> None:
    assert beacon_statuses(proxy) == {202, 429}
    first, second = nodes
    hits, views = (f"{proxy}/v1/analytics/site/{name}" for name in ("hits", "views"))
    for number in range(6):
        assert httpx.post(hits, json={"path": "/a", "userAgent": HUMAN}, headers=first.auth).status_code == 202, number
    assert {httpx.get(proxy + path).status_code for path in ("/metrics", "/readyz")} == {404}
    second.kill()
    for number in range(6):
        assert httpx.post(hits, json={"path": "/a", "userAgent": HUMAN}, headers=first.auth).status_code == 202, number
    for _ in range(2):
        counts = {each["path"]: each["total"] for each in httpx.get(views, headers=first.auth).json()["views"]}
        assert counts["/a"] == 12


def test_settings_of_the_nodes_are_known() -> None:
    lines = [line for line in (DEPLOY / "readership.env").read_text().splitlines() if line and line[0] != "#"]
    environ = dict(line.split("=", 1) for line in lines)
    chosen = settings.read(environ, Path("/var/lib/readership"))
    assert (str(chosen.lake), chosen.trusted_proxies) == ("s3://readership/lake", "10.0.0.10")


@pytest.mark.parametrize("unit", [path.name for path in sorted(DEPLOY.glob("*.service"))])
def test_unit_is_well_formed(unit: str) -> None:
    read = ConfigParser(strict=False, interpolation=None, delimiters="=")
    read.optionxform = str  # type: ignore[assignment,method-assign]  # names of systemd are case-sensitive
    read.read(DEPLOY / unit)
    program, *arguments = shlex.split(read["Service"]["ExecStart"])
    assert program.startswith("/")
    if program.endswith("/readership"):
        name, command, options = main.resolve_command(Context(main), arguments)
        assert command is not None
        context = command.make_context(name, options, Context(main))
        assert context.params["host"] == "${LISTEN}"
