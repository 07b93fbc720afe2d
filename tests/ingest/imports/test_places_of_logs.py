"""The country and the language that a log has are stored with the views by people."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ingest.hits.row import Site as ProjectSite
from ingest.imports.importer import Options
from tests.ingest.formats import test_cloudfront, test_json_lines
from tests.ingest.formats.test_clf import FIREFOX, line
from tests.ingest.imports.prepared.test_requests import GPTBOT, run_import
from tests.ingest.places import mmdb
from tests.warehouse.site import Site
from warehouse.tables import HITS_TABLE

PROXY = {"request.remote_ip": "198.51.100.9"}
"""Change to a line of Caddy: the request came through a trusted proxy, and `client_ip` is the reader's address."""
GERMAN = "de-DE,de;q=0.9,en;q=0.8"


def caddy(*, agent: str = FIREFOX, language: Any = (GERMAN,), **headers: str) -> bytes:
    changed = {"request.headers.User-Agent": [agent], "request.headers.Accept-Language": language}
    named = {f"request.headers.{name.replace('_', '-')}": [value] for name, value in headers.items()}
    return test_json_lines.line("caddy", **changed, **named, **PROXY)


def cloudflare(country: object, headers: object = ..., agent: str = FIREFOX) -> bytes:
    changed = {"ClientRequestUserAgent": agent, "RequestHeaders": headers}
    return test_json_lines.line("cloudflare", ClientCountry=country, **{k: v for k, v in changed.items() if v != ...})


def cloudfront(*countries: str) -> bytes:
    columns = (*test_cloudfront.COLUMNS, "c-country")
    lines = [test_cloudfront.row(*columns, **{"c-country": each}) for each in countries]
    return b"\n".join([b"#Fields: " + " ".join(columns).encode(), *lines])


def nginx(address: str, country: str, language: str) -> bytes:
    return line(host=address.encode()) + f' "{country}" "{language}"'.encode()


NGINX = (
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"'
)
LOGS: dict[str, tuple[bytes, str | None, list[tuple[str | None, str | None]]]] = {
    "cloudflare": (
        b"\n".join(
            [
                cloudflare("de"), cloudflare("FR", {"accept-language": GERMAN}), cloudflare("XX"), cloudflare("T1"),
                cloudflare(None), cloudflare("de\x1f"), cloudflare("us", agent=GPTBOT),
            ]
        ),
        None,
        [("DE", None), ("FR", "de-DE"), *[(None, None)] * 5],
    ),
    "caddy": (
        b"\n".join(
            [
                caddy(), caddy(language=[]), caddy(language="pt-br"), caddy(agent=GPTBOT),
                caddy(Cf_Ipcountry="US"),  # anybody can send it
            ]
        ),
        None,
        [(None, "de-DE"), (None, None), (None, "pt-BR"), (None, None), (None, "de-DE")],
    ),
    "netlify": (
        b"\n".join(test_json_lines.line("netlify", country=each) for each in ("de", "xx", None)),
        None,
        [("DE", None), (None, None), (None, None)],
    ),
    "cloudfront": (cloudfront("DE", "-", "de", "ZZ"), None, [("DE", None), (None, None), ("DE", None), (None, None)]),
    "nginx": (
        b"\n".join([nginx("9.9.9.9", "FR", GERMAN), nginx("9.9.9.9", "-", "-"), nginx("1.1.1.1", "T1", "*")]),
        f'{NGINX} "$http_cf_ipcountry" "$http_accept_language"',
        [("FR", "de-DE"), (None, None), (None, None)],
    ),
    "nginx with its own database": (
        nginx("9.9.9.9", "fr", ""), f'{NGINX} "$geoip_country_code" "$http_accept_language"', [("FR", None)],
    ),
}  # fmt: skip


def places(site: Site) -> list[tuple[str | None, str | None]]:
    return [(row["country"], row["language"]) for row in site.stored(HITS_TABLE)]


@pytest.mark.parametrize(("name", "times"), [*((name, 1) for name in LOGS), ("caddy", 800)])  # 800: in staged files
def test_view_of_a_log_has_the_logged_country_and_language(tmp_path: Path, log: Path, name: str, times: int) -> None:
    written, log_format, expected = LOGS[name]
    log.write_bytes((written + b"\n") * times)
    with closing(Site(tmp_path / "data")) as site:
        run_import(site, log, Options(format=log_format))
        site.load()
        assert sorted(places(site), key=str) == sorted(expected * times, key=str)


def test_logged_country_decides_before_the_address(tmp_path: Path, log: Path) -> None:
    written, log_format, _ = LOGS["nginx"]
    log.write_bytes(written + b"\n")
    database = mmdb.write(tmp_path / "countries.mmdb", {"9.9.9.0/24": {"country": {"iso_code": "DE"}}})
    with closing(Site(tmp_path / "data")) as site:
        run_import(site, log, Options(format=log_format, site=ProjectSite(country_database=database)))
        assert sorted(places(site), key=str) == [("DE", None), ("FR", "de-DE"), (None, None)]
