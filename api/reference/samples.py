"""Lines to paste, for each operation."""

ADDRESS = "http://127.0.0.1:8000"
"""Where the samples send; the page puts the address at which it is read in its place."""
_JOBS = f"{ADDRESS}/v2/agent/demo/job"
_KEY = '-H "Authorization: Bearer $KEY"'
SAMPLES = {
    "sendHits": {
        "A server sends two hits": f"""\
curl {ADDRESS}/v1/analytics/demo/hits {_KEY} \\
  -H "Content-Type: application/json" -d '[
    {{"path": "/docs/hello", "userAgent": "Mozilla/5.0 (compatible; GPTBot/1.3; +https://openai.com/gptbot)"}},
    {{"path": "/docs/hello", "userAgent": "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Firefox/145.0"}}
  ]'""",
        "A server sends NDJSON, and may send it again": f"""\
printf '%s\\n' '{{"path": "/blog", "userAgent": "GPTBot/1.3"}}' '{{"path": "/blog", "userAgent": "curl/8.5"}}' |
  curl {ADDRESS}/v1/analytics/demo/hits {_KEY} \\
    -H "Content-Type: application/x-ndjson" -H "Idempotency-Key: log-2026-09-01-part-7" --data-binary @-""",
        "A page sends a beacon": f"""\
curl {ADDRESS}/v1/analytics/demo/hits -H "Content-Type: text/plain" -A "Mozilla/5.0 Firefox/145.0" \\
  -d '{{"url": "https://example.com/docs/hello", "eventId": "0b9c2b8e-6a55-4a0e-9d2c-7c7f3f7f3f10"}}'""",
    },
    "mayPageSend": {
        "": f'curl -i -X OPTIONS {ADDRESS}/v1/analytics/demo/hits -H "Origin: https://example.com"',
    },
    "sendPixel": {"": f'curl -o pixel.gif "{ADDRESS}/v1/analytics/demo/pixel.gif?path=/docs/hello"'},
    "exportViews": {
        "The second page of 50 paths": f"""\
curl "{ADDRESS}/v1/analytics/demo/views?dateFrom=2026-09-01&offset=50" {_KEY}""",
        "September as CSV": f"""\
curl "{ADDRESS}/v1/analytics/demo/views?dateFrom=2026-09-01&dateTo=2026-10-01" {_KEY} \\
  -H "Accept: text/csv\"""",
        "All there is as Parquet": f"""\
curl {ADDRESS}/v1/analytics/demo/views {_KEY} \\
  -H "Accept: application/vnd.apache.parquet" -o views.parquet""",
    },
    "classify": {"": f'curl -G {ADDRESS}/v1/classify {_KEY} --data-urlencode "userAgent=GPTBot/1.3"'},
    "createJob": {
        "": f"""\
curl {_JOBS} {_KEY} -H "Content-Type: application/json" \\
  -d '{{"prompt": "Explain the retry settings on the page about timeouts."}}'""",
    },
    "listJobs": {"Those that failed": f'curl "{_JOBS}s?status=failed" {_KEY}'},
    "getJob": {"": f"curl {_JOBS}/$JOB {_KEY}"},
    "sendMessage": {
        "": f"""\
curl {_JOBS}/$JOB/message {_KEY} -H "Content-Type: application/json" \\
  -d '{{"prompt": "Shorter, please."}}'""",
    },
    "cancelJob": {"": f"curl -X POST {_JOBS}/$JOB/cancel {_KEY}"},
    "archiveJob": {"": f"curl -X POST {_JOBS}/$JOB/archive {_KEY}"},
    "getLog": {"": f"curl {_JOBS}/$JOB/log {_KEY}"},
    "script": {"": f"curl {ADDRESS}/beacon.js"},
    "alive": {"": f"curl {ADDRESS}/healthz"},
    "ready": {"": f"curl {ADDRESS}/readyz"},
    "metrics": {"": f"curl {ADDRESS}/metrics"},
    "home": {"": f"curl -L {ADDRESS}/"},
    "description": {"": f"curl {ADDRESS}/openapi.json"},
    "reference": {"": f"curl {ADDRESS}/docs"},
}
"""By operation, then by what the sample shows."""
