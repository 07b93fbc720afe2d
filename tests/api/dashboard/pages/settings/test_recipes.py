"""Each recipe runs as it is shown: against a running service, under the program that it configures."""

import json
import os
import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from configparser import ConfigParser
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import msgspec
import pytest

from api.dashboard.pages.settings import recipes
from api.dashboard.pages.settings.recipes import FOLDER, Recipes
from ingest.hits.hit import ServerHit, server_hit
from ingest.hits.row import row
from ingest.verification.public_keys import JsonWebKey, usable_keys
from ingest.verification.verifier import Verifier
from tests.api.dashboard.html import Html
from tests.api.dashboard.site import FIREFOX, opened
from tests.ingest.verification.operators.signing import HOST, Signer
from tests.processes.running import COMMAND, PROJECT, Running, new_key
from tests.processes.waiting import killed_on_failure, until
from tests.programs import find, require
from warehouse.columns.kinds import NOT_PAGES
from warehouse.schema import HOT

GPTBOT = "Mozilla/5.0 (compatible; GPTBot/1.3; +https://openai.com/gptbot)"
STRANGE = 'GPTBot/1.3 "quoted" \\ back \xe9'
"""A user agent that must be escaped in JSON, with a byte that is not UTF-8."""
SIGNER = Signer()
CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/149.0.0.0 Safari/537.36"
"""User agent of requests that SIGNER signs."""


@pytest.fixture
def shown(service: Running) -> Recipes:
    return Recipes(PROJECT, service.url, COMMAND, "readership")


@pytest.fixture
def environ(service: Running) -> dict[str, str]:
    """Return an environment with a key that may only send."""
    return {**os.environ, "READERSHIP_KEY": new_key(service.data, scope="ingest")}


def rows(service: Running, path: str) -> list[dict[str, object]]:
    """Return the stored views of a path."""
    columns = "user_agent, traffic, status, referrer, format, source, verification, bytes, duration_ms, cache"
    query = f"SELECT {columns} FROM hits WHERE path = '{path}' ORDER BY ALL"
    answer = service.run("sql", query, "--format", "json")
    assert answer.returncode == 0, answer.stderr
    views: list[dict[str, object]] = json.loads(answer.stdout)
    return views


@contextmanager
def site() -> Iterator[tuple[str, list[bytes]]]:
    """Serve a site behind a cache of Cloudflare; yield its origin, and a list of the bodies that it got.

    Paths below /missing are not found.
    """
    posted: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(404 if self.path.startswith("/missing") else 200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", "2")
            self.send_header("CF-Cache-Status", "REVALIDATED")
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else b"ok")

        def do_POST(self) -> None:
            posted.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.do_GET()

        do_HEAD = do_GET  # noqa: N815  # the name that http.server calls

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", posted
        finally:
            server.shutdown()
            thread.join()


def signed(url: str) -> dict[str, str]:
    """Return the headers of a signed request that asks for Markdown."""
    headers = SIGNER.sign(url=url, created_s=int(time.time()))
    sent = {"user-agent": CHROME, "accept": "text/markdown", "accept-language": "en", "sec-fetch-mode": "cors"}
    return sent | headers


def verified(body: bytes) -> tuple[object, ...]:
    """Return agent, rule, verification, evidence and hints of a posted hit, where the key of SIGNER is known."""
    keys = usable_keys([JsonWebKey(**SIGNER.jwk)])
    verifier = Verifier(known_keys={id: (HOST, key) for id, key in keys.items()})
    now_us = int(time.time() * 1_000_000)
    hit = server_hit(msgspec.json.decode(body, type=ServerHit), now_us)
    values = dict(zip(HOT.names, row(PROJECT, hit, "server", now_us, verifier), strict=True))
    return tuple(values[name] for name in ("agent", "rule", "verification", "verified_by", "hints"))


BY_SIGNATURE = ("Google-Agent", "ai:signed:Google-Agent", "signed_known_key", f"key:{HOST}", None)


def answers(url: str) -> bool:
    try:
        return httpx.get(url).status_code < 500
    except httpx.TransportError:
        return False


def test_every_recipe_is_shown_by_the_page() -> None:
    page = (FOLDER.parent / "setup.html").read_text()
    assert [file.name for file in sorted(FOLDER.iterdir()) if f'"{file.name}"' not in page] == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "agent"), [("server.sh", "GPTBot"), ("server.py", "ClaudeBot"), ("server.mjs", "PerplexityBot")]
)
def test_server_example_stores_its_view(
    service: Running, shown: Recipes, environ: dict[str, str], tmp_path: Path, name: str, agent: str
) -> None:
    program = {"server.sh": "sh", "server.py": sys.executable, "server.mjs": "node"}[name]
    if name != "server.py":
        require("curl" if name == "server.sh" else "node")
    before = service.get("path=/readership-test")["totals"]["ai"]
    file = tmp_path / name
    file.write_text(shown.text(name))
    subprocess.run([program, file], env=environ, check=True, timeout=60)
    assert service.get("path=/readership-test")["totals"]["ai"] == before + 1
    (stored,) = (each for each in rows(service, "/readership-test") if agent in str(each["user_agent"]))
    assert (stored["verification"], stored["status"]) == ("verified", 200)


CALLS = {
    "server.py": "\nimport json\ncount_view(os.environ['URL'], '127.0.0.1', json.loads(os.environ['HEADERS']))\n",
    "server.mjs": "\nawait countView(process.env.URL, '127.0.0.1', JSON.parse(process.env.HEADERS));\n",
    "cloudflare-worker.js": """
        const waiting = [], context = { waitUntil: (promise) => waiting.push(promise), passThroughOnException() {} };
        const request = new Request(process.env.URL, { headers: JSON.parse(process.env.HEADERS) });
        await worker.fetch(request, process.env, context);
        await Promise.all(waiting);
    """,
    "vercel-middleware.js": """
        const waiting = [], context = { waitUntil: (promise) => waiting.push(promise) };
        middleware(new Request(process.env.URL, { headers: JSON.parse(process.env.HEADERS) }), context);
        await Promise.all(waiting);
    """,
}
"""Calls of the recipes with the request of the environment, to be added to their texts."""


COUNTRY = {"vercel-middleware.js": {"x-vercel-ip-country": "DE"}}
CLOUDFLARE = {"cf-ipcountry": "DE"}
"""Headers in which edge networks name the country."""


@pytest.mark.long
@pytest.mark.parametrize("name", ["server.py", "server.mjs", "cloudflare-worker.js", "vercel-middleware.js"])
def test_recipe_sends_what_verifies_a_signature(environ: dict[str, str], tmp_path: Path, name: str) -> None:
    if name != "server.py":
        require("node")
    with site() as (origin, posted):
        url = f"{origin}/signed?page=2"
        headers = signed(url) | COUNTRY.get(name, CLOUDFLARE)
        environ |= {"URL": url, "HEADERS": json.dumps(headers)}
        program = {"server.py": sys.executable}.get(name, "node")
        file = tmp_path / f"recipe.{'py' if name == 'server.py' else 'mjs'}"
        file.write_text(
            Recipes(PROJECT, origin, COMMAND, "readership").text(name).replace("export default {", "const worker = {")
            + CALLS[name]
        )
        subprocess.run([program, file], env=environ, check=True, timeout=60)
    assert verified(posted[-1]) == BY_SIGNATURE
    assert json.loads(posted[-1])["headers"].items() >= COUNTRY.get(name, CLOUDFLARE).items()


@pytest.mark.long
@pytest.mark.needs("node")
@pytest.mark.parametrize(
    ("name", "status", "cache"), [("cloudflare-worker.js", 200, "hit"), ("vercel-middleware.js", None, None)]
)
def test_edge_program_sends_pages_and_nothing_else(
    service: Running,
    shown: Recipes,
    environ: dict[str, str],
    tmp_path: Path,
    name: str,
    status: int | None,
    cache: str | None,
) -> None:
    (tmp_path / "edge.mjs").write_text(shown.text(name))
    path = f"/{name}"
    (tmp_path / "run.mjs").write_text(
        """
        import * as edge from "./edge.mjs";
        const [origin, path, userAgent] = process.argv.slice(2);
        const waiting = [];
        const context = { waitUntil: (promise) => waiting.push(promise), passThroughOnException() {} };
        const visit = async (path, method = "GET") => {
          const headers = { "user-agent": userAgent, referer: "https://search.example/?q=1", accept: "text/markdown" };
          headers["cf-connecting-ip"] = headers["x-real-ip"] = "20.171.206.5";
          const request = new Request(origin + path, { method, headers });
          if (edge.default.fetch) {
            const response = await edge.default.fetch(request, process.env, context);
            if (response.status !== (path.startsWith("/missing") ? 404 : 200)) throw new Error(response.status);
          } else if (edge.default(request, context) !== undefined) throw new Error("a response");
        };
        await visit(path + "?utm_source=news");
        await visit(path + "/logo.PNG");
        await visit(path + "/form", "HEAD");
        if (edge.default.fetch) await visit("/missing" + path);
        if (waiting.length !== 1) throw new Error(`${waiting.length} views`);
        await Promise.all(waiting);
        """
    )
    with site() as (origin, _):
        argv = ["node", tmp_path / "run.mjs", origin, path.removesuffix(".js"), GPTBOT]
        subprocess.run(argv, env=environ, check=True, timeout=60)
    (row,) = rows(service, path.removesuffix(".js"))
    assert (row["traffic"], row["status"], row["source"]) == ("ai", status, "server")
    assert (row["user_agent"], row["referrer"]) == (GPTBOT, "https://search.example/?q=1")
    assert row["format"] == (None if status is None else "text/html")
    assert (row["verification"], row["bytes"]) == ("verified", None if status is None else 2)
    assert (row["duration_ms"] is None, row["cache"]) == (status is None, cache)


def test_configurations_are_well_formed(shown: Recipes) -> None:
    assert tomllib.loads(shown.text("wrangler.toml"))["main"] == "readership.js"
    unit = ConfigParser(strict=True, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # names of systemd are case-sensitive
    unit.read_string(shown.text("log-service.ini", log="/var/log/nginx/access.log", group="adm"))
    assert unit["Service"]["ExecStart"] == f"{COMMAND} import {PROJECT} /var/log/nginx/access.log --follow"
    for name in ("nginx-send.sh", "import.sh", "wrangler.sh", "vercel.sh", "server.sh"):
        subprocess.run(["sh", "-n"], input=shown.text(name, log="/var/log/x.log"), text=True, check=True)


@pytest.mark.long
def test_import_commands_name_the_program_the_folder_and_the_account_of_the_service(tmp_path: Path) -> None:
    data, log = tmp_path / "o'neil & $HOME" / "data", tmp_path / "access.log"
    log.write_text(f'192.0.2.1 - - [01/Nov/2026:12:00:00 +0000] "GET /as-shown HTTP/1.1" 200 5 "-" "{GPTBOT}"\n')
    with opened(data) as dashboard:
        page = Html(dashboard.visitor("owner").get(f"/projects/{PROJECT}/setup").text)
    commands = next(text for text in page.texts if text.startswith("# Once"))
    once = commands.splitlines()[1].replace("/var/log/nginx/access.log", str(log))
    subprocess.run(["sh", "-c", once], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    with opened(data) as dashboard:
        assert dashboard.get_report("views?path=/as-shown")["totals"]["ai"] == 1
        unit = next(text for text in page.texts if text.startswith("# /etc/systemd/system"))
    program, folder = shlex.split(commands.splitlines()[1])[:3:2]
    assert (program, folder) == (COMMAND, str(data))
    (line,) = (line for line in unit.splitlines() if line.startswith("ExecStart="))
    assert shlex.split(line.removeprefix("ExecStart=").replace("$$", "$"))[:3] == [COMMAND, "--data", str(data)]
    assert f"User={data.owner()}" in unit
    assert "/var/lib/readership" not in page.text


@pytest.mark.long
@pytest.mark.needs("nginx", "curl")
def test_nginx_writes_pages_and_the_script_posts_each_once(
    service: Running, shown: Recipes, environ: dict[str, str], closed_port: int, tmp_path: Path
) -> None:
    port, log = closed_port, tmp_path / "readership.ndjson"
    tmp_path.chmod(0o755)
    html = tmp_path / "html"
    html.mkdir()
    for name in ("nginx page", "logo.png", "signed"):
        (html / name).write_text("ok")
    configuration = shown.text("nginx.conf").replace("/var/log/nginx/readership.ndjson", str(log))
    user = "user root;" if os.getuid() == 0 else ""
    (tmp_path / "nginx.conf").write_text(
        f"{user} daemon off; pid {tmp_path}/nginx.pid; error_log {tmp_path}/error.log;"
        " events {} http { client_body_temp_path %s/b; proxy_temp_path %s/p; fastcgi_temp_path %s/f;"
        " uwsgi_temp_path %s/u; scgi_temp_path %s/s;"
        % ((tmp_path,) * 5)
        + f"\nproxy_cache_path {tmp_path}/cache keys_zone=pages:1m; {configuration}"
        f"\nserver {{ listen 127.0.0.1:{port} reuseport; root {html};"
        f" location /cached {{ proxy_pass http://127.0.0.1:{port}/origin; proxy_cache pages; proxy_cache_valid 1m; }}"
        " location /origin { access_log off; return 200 ok; } } }"
    )
    nginx = [str(find("nginx")), "-c", str(tmp_path / "nginx.conf"), "-e", str(tmp_path / "error.log")]
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "nginx").write_text(f'#!/bin/sh\nexec {" ".join(nginx)} "$@"\n')
    (programs / "nginx").chmod(0o755)
    environ = environ | {"READERSHIP_LOG": str(log), "PATH": f"{programs}:{environ['PATH']}"}
    script = tmp_path / "readership-send"
    script.write_text(shown.text("nginx-send.sh"))
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(nginx) as process, killed_on_failure(process):
        until(lambda: answers(url))
        for user_agent in (FIREFOX, STRANGE):
            httpx.get(f"{url}/nginx%20page?q=1", headers={"User-Agent": user_agent.encode("latin-1")})  # type: ignore[dict-item]
            httpx.get(f"{url}/cached")
        httpx.get(
            f"{url}/signed", headers={**signed("http://site.example/signed"), **CLOUDFLARE, "Host": "site.example"}
        )
        for path in ("/logo.png", "/missing"):
            httpx.get(url + path)
        until(lambda: log.read_bytes().count(b"\n") == 5)
        logged = log.read_bytes().splitlines()
        httpx.head(f"{url}/nginx%20page")
        without_key = environ | {"READERSHIP_KEY": "?"}
        refused = subprocess.run(["sh", script], env=without_key, capture_output=True, check=False)
        assert refused.returncode == 1
        assert b"API key" in refused.stderr
        (part,) = [*(tmp_path / f"{log.name}.parts").iterdir()][:1]
        (tmp_path / "readership.ndjson.moved").write_bytes(part.read_bytes())
        for _ in range(2):  # the first run goes on after an interruption; the second has nothing to send
            subprocess.run(["sh", script], env=environ, check=True, timeout=60)
        process.terminate()
    views = rows(service, "/nginx%20page")
    assert [view["user_agent"] for view in views] == [STRANGE.removesuffix("\xe9"), FIREFOX]
    stored = {(view["status"], view["source"], view["bytes"], view["cache"]) for view in views}
    assert stored == {(200, "server", 2, None)}
    assert [view["cache"] for view in rows(service, "/cached")] == ["hit", "miss"]
    assert all(0 <= view["duration_ms"] < 1_000 for view in views)  # type: ignore[operator]
    assert verified(logged[-1]) == BY_SIGNATURE
    assert json.loads(logged[-1])["headers"].items() >= CLOUDFLARE.items()
    assert not rows(service, "/logo.png")
    assert not rows(service, "/missing")


@pytest.mark.long
@pytest.mark.needs("caddy")
def test_log_of_caddy_is_imported(service: Running, shown: Recipes, closed_port: int, tmp_path: Path) -> None:
    port, log = closed_port, tmp_path / "access.log"
    block = shown.text("caddyfile").replace("/var/log/caddy/access.log", str(log))
    (tmp_path / "Caddyfile").write_text(f"{{\n\tadmin off\n}}\nhttp://127.0.0.1:{port} {{\n{block}\n\trespond ok\n}}\n")
    command = [str(find("caddy")), "run", "--config", str(tmp_path / "Caddyfile"), "--adapter", "caddyfile"]
    environ, quiet = {**os.environ, "HOME": str(tmp_path)}, subprocess.DEVNULL
    with subprocess.Popen(command, env=environ, stderr=quiet) as process, killed_on_failure(process):
        until(lambda: answers(f"http://127.0.0.1:{port}/started"))
        httpx.get(f"http://127.0.0.1:{port}/caddy-page", headers={"User-Agent": GPTBOT})
        process.terminate()
    assert service.run("import", PROJECT, str(log)).returncode == 0
    assert [row["user_agent"] for row in rows(service, "/caddy-page")] == [GPTBOT]


def test_extensions_of_the_recipes_are_those_of_the_import(shown: Recipes) -> None:
    assert all(extension in shown.text("nginx.conf") for extension in NOT_PAGES)


def test_recipe_contains_no_unusual_host_of_a_request() -> None:
    assert recipes.PLAIN_ADDRESS.fullmatch("https://stats.example.com/path")
    for address in ('http://x"$(id)', "http://x;id", "http://x`id`", "http://x y", "http://x'"):
        assert not recipes.PLAIN_ADDRESS.fullmatch(address)
