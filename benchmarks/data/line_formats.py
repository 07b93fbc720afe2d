"""Log lines of the products that log one JSON object a line, with the fields and sizes of their documentation.

The user agent, the target and the referrer of a generated hit are written where the product logs them. The other fields
are those of an ordinary request: Caddy logs all request and response headers, Cloudflare 31 of the fields of
http_requests.
"""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple


class Logged(NamedTuple):
    """A request to be logged. `number` is its place in the log; `referrer` is `-` where the client sent none."""

    number: int
    at: datetime
    address: str
    method: str
    target: str
    status: int
    size_bytes: int
    referrer: str
    user_agent: str

    @property
    def is_page(self) -> bool:
        return "." not in self.target

    @property
    def accept(self) -> str:
        return "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" if self.is_page else "*/*"

    @property
    def content_type(self) -> str:
        return "text/html; charset=utf-8" if self.is_page else "text/css; charset=utf-8"


def caddy(logged: Logged) -> dict[str, Any]:
    """Return a line of Caddy 2: https://caddyserver.com/docs/logging"""
    headers = {
        "User-Agent": [logged.user_agent],
        "Accept": [logged.accept],
        "Accept-Language": ["en-US,en;q=0.5"],
        "Accept-Encoding": ["gzip, deflate, br, zstd"],
        "Sec-Fetch-Dest": ["document"],
        "Sec-Fetch-Mode": ["navigate"],
        "Sec-Fetch-Site": ["none"],
        "Priority": ["u=0, i"],
        **({} if logged.referrer == "-" else {"Referer": [logged.referrer]}),
    }
    return {
        "level": "info",
        "ts": round(logged.at.timestamp() + logged.number % 1_000 / 1_000, 7),
        "logger": "http.log.access.log0",
        "msg": "handled request",
        "request": {
            "remote_ip": logged.address,
            "remote_port": str(20_000 + logged.number % 40_000),
            "client_ip": logged.address,
            "proto": "HTTP/2.0",
            "method": logged.method,
            "host": "example.com",
            "uri": logged.target,
            "headers": headers,
            "tls": {
                "resumed": False,
                "version": 772,
                "cipher_suite": 4865,
                "proto": "h2",
                "server_name": "example.com",
                "ech": False,
            },
        },
        "bytes_read": 0,
        "user_id": "",
        "duration": 0.000929675 + logged.number % 977 / 1_000_000,
        "size": logged.size_bytes,
        "status": logged.status,
        "resp_headers": {
            "Server": ["Caddy"],
            "Alt-Svc": ['h3=":443"; ma=2592000'],
            "Content-Type": [logged.content_type],
            "Content-Encoding": ["gzip"],
            "Etag": [f'"d8q{logged.size_bytes}"'],
            "Vary": ["Accept-Encoding"],
        },
    }


def cloudflare(logged: Logged) -> dict[str, Any]:
    """Return a line of Logpush: https://developers.cloudflare.com/logs/logpush/logpush-job/datasets/zone/http_requests/"""
    at = f"{logged.at:%Y-%m-%dT%H:%M:%SZ}"
    return {
        "BotScore": 30,
        "CacheCacheStatus": "hit",
        "CacheResponseBytes": logged.size_bytes,
        "CacheResponseStatus": logged.status,
        "ClientASN": 63_949,
        "ClientCountry": "us",
        "ClientDeviceType": "desktop",
        "ClientIP": logged.address,
        "ClientRequestBytes": 2_112,
        "ClientRequestHost": "example.com",
        "ClientRequestMethod": logged.method,
        "ClientRequestPath": logged.target.partition("?")[0],
        "ClientRequestProtocol": "HTTP/2",
        "ClientRequestReferer": "" if logged.referrer == "-" else logged.referrer,
        "ClientRequestScheme": "https",
        "ClientRequestURI": logged.target,
        "ClientRequestUserAgent": logged.user_agent,
        "ClientSSLCipher": "AEAD-AES128-GCM-SHA256",
        "ClientSSLProtocol": "TLSv1.3",
        "EdgeColoCode": "FRA",
        "EdgeEndTimestamp": at,
        "EdgeResponseBytes": logged.size_bytes + 700,
        "EdgeResponseContentType": "text/html",
        "EdgeResponseStatus": logged.status,
        "EdgeStartTimestamp": at,
        "OriginIP": "",
        "OriginResponseStatus": 0,
        "RayID": f"8ec7c1d9{logged.number:08x}",
        "RequestHeaders": {"accept": logged.accept},
        "WorkerSubrequest": False,
        "ZoneName": "example.com",
    }


def vercel(logged: Logged) -> dict[str, Any]:
    """Return a line of a log drain: https://vercel.com/docs/drains/reference/logs"""
    ms = int(logged.at.timestamp() * 1_000)
    return {
        "id": f"15738171873303770617{logged.number:08}",
        "deploymentId": "dpl_233NRGRjVZX1caZrXWtz5g1TAksD",
        "source": "static",
        "host": "my-app-abc123.vercel.app",
        "timestamp": ms + 7,
        "projectId": "gdufoJxB6b9b1fEqr1jUtFkyavUU",
        "level": "info",
        "message": f"[{logged.method}] {logged.target} status={logged.status}",
        "entrypoint": "",
        "path": logged.target.partition("?")[0],
        "requestId": f"643af4e3-975a-4cc7-9e7a-{logged.number - (logged.number % 20 == 1):012}",
        "environment": "production",
        "branch": "main",
        "projectName": "my-app",
        "executionRegion": "fra1",
        "statusCode": logged.status,
        "ja3Digest": "769,47-53-5-10-49161-49162-49171-49172-50-56-19-4,0-10-11,23-24-25,0",
        "ja4Digest": "t13d1516h2_8daaf6152771_02713d6af862",
        "proxy": {
            "timestamp": ms,
            "method": logged.method,
            "host": "example.com",
            "path": logged.target,
            "userAgent": [logged.user_agent],
            "referer": "" if logged.referrer == "-" else logged.referrer,
            "region": "fra1",
            "statusCode": logged.status,
            "clientIp": logged.address,
            "scheme": "https",
            "vercelCache": "HIT",
            "vercelId": f"fra1::{logged.number:08x}",
            "lambdaRegion": "fra1",
            "cacheId": "",
            "pathType": "prerender",
        },
    }


def netlify(logged: Logged) -> dict[str, Any]:
    """Return a line of a log drain: https://docs.netlify.com/manage/monitoring/log-drains/"""
    return {
        "account_id": "5b0c2d3e4f5a6b7c8d9e0f1a",
        "client_ip": logged.address,
        "content_type": logged.content_type,
        "country": "de",
        "deploy_id": "5b1c2d3e4f5a6b7c8d9e0f1b",
        "domain": "example.com",
        "duration": logged.number % 90,
        "log_type": "traffic",
        "method": logged.method,
        "path": logged.target,
        "referrer": "" if logged.referrer == "-" else logged.referrer,
        "request_id": f"01J{logged.number:023}",
        "site_id": "5b2c2d3e-4f5a-6b7c-8d9e-0f1a2b3c4d5e",
        "status_code": logged.status,
        "timestamp": int(logged.at.timestamp() * 1_000),
        "url": f"https://example.com{logged.target}",
        "user_agent": logged.user_agent,
    }


def combined(logged: Logged) -> str:
    """Return a line of combined format."""
    return (
        f"{logged.address} - - [{logged.at:%d/%b/%Y:%H:%M:%S} +0000] "
        f'"{logged.method} {logged.target} HTTP/1.1" {logged.status} {logged.size_bytes} '
        f'"{logged.referrer}" "{logged.user_agent}"\n'
    )


def _json(fields: Callable[[Logged], dict[str, Any]]) -> Callable[[Logged], str]:
    return lambda logged: json.dumps(fields(logged), ensure_ascii=False, separators=(",", ":")) + "\n"


JSON_PRODUCTS = (caddy, cloudflare, vercel, netlify)
FORMATS: Mapping[str, Callable[[Logged], str]] = {
    "combined": combined,
    **{fields.__name__: _json(fields) for fields in JSON_PRODUCTS},
}
"""Functions that return the line of a request, by the name of the log format."""
