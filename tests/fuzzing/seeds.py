"""The first inputs of each target, from which the fuzzer derives others."""

import gzip
import json

HIT = {
    "path": "/a?utm_source=x",
    "userAgent": "Mozilla/5.0 (compatible; GPTBot/1.2)",
    "timestamp": "2026-09-01T12:00:00Z",
}
COMBINED = b'9.9.9.9 - - [01/Sep/2026:12:00:00 +0200] "GET /a?b=c HTTP/1.1" 200 12 "https://a.example/" "curl/8"\n'
CADDY = {
    "ts": 1788264000.5,
    "request": {"client_ip": "9.9.9.9", "method": "GET", "uri": "/a", "headers": {"User-Agent": ["curl/8"]}},
    "status": 200,
}
CLOUDFRONT = (
    b"#Version: 1.0\n#Fields: date time c-ip cs-method cs-uri-stem sc-status cs(User-Agent) cs-uri-query\n"
    b"2026-09-01\t12:00:00\t9.9.9.9\tGET\t/a\t200\tcurl%2F8\t-\n"
)
SEEDS: dict[str, list[bytes]] = {
    "hits": [
        b"{" + json.dumps(HIT).encode(),
        b"[" + json.dumps([HIT, {"path": 1}, {}, {**HIT, "headers": {"Accept": "text/markdown"}}]).encode(),
        b"n" + json.dumps(HIT).encode() + b"\n\n" + json.dumps({"path": "/b", "eventId": "\ud83d"}).encode(),
        b"b" + json.dumps({"path": "/x?utm_source=y", "referrer": "https://b.example"}).encode(),
        b"g" + gzip.compress(json.dumps([HIT]).encode(), mtime=0),
    ],
    "logs": [
        COMBINED * 2, b"a.example:443 " + COMBINED, COMBINED.partition(b' "https')[0] + b"\n",
        json.dumps(CADDY).encode() + b"\n", CLOUDFRONT, b"no log\n" + COMBINED + b"\xff\x00\n" + COMBINED[:50],
    ],
    "queries": [
        b"views dateFrom=2026-09-01&dateTo=2026-09-02T12:00:00%2B02:00&limit=10&offset=5&path=/docs/*&traffic=ai",
        b"breakdown by=referrerHost&operator=OpenAI&purpose=training&verification=verified&source=log",
        b"series interval=hour&timezone=Europe/Berlin&dateFrom=2026W101&dateTo=20260402T0102",
        b"errors status=404&agent=GPTBot&dateFrom=0001-01-01&dateTo=9999-12-31",
    ],
    "requests": [
        b"GET /v1/analytics/site/views?limit=1\nAccept: text/csv\n\n",
        b"GET /v1/analytics/site/breakdown?by=agent\nIf-None-Match: *\n\n",
        b"POST /v1/analytics/site/hits\nContent-Type: application/x-ndjson\n\n" + json.dumps(HIT).encode(),
        b"POST /v1/analytics/site/hits\nOrigin: https://a.example\n\n" + b'{"path": "/x"}',
        b"GET /projects/site?period=7d\nCookie: readership_session=x\n\n",
        b"OPTIONS /v1/analytics/site/hits\nOrigin: https://a.example\nAccess-Control-Request-Method: POST\n\n",
    ],
    "commits": [
        b'{"commitInfo":{"timestamp":1,"operation":"WRITE"}}\n{"txn":{"appId":"node","version":7}}\n',
        b'{"add":{"path":"date=2026-09-15/a","partitionValues":{"date":"2026-09-15"},"size":1,"modificationTime":1}}\n',
        b'{"remove":{"path":"a.parquet","deletionTimestamp":1,"dataChange":true}}\n',
        b'{"protocol":{"minReaderVersion":9,"minWriterVersion":9}}\n',
        b"",
    ],
}  # fmt: skip
"""Seeds by target. The first byte of a seed of `hits`, and the first word of one of `queries`, chooses the function."""
