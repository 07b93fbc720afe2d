"""Pages of requests that are no page views. Their days are of UTC.

- `days`: The UTC days of these pages.
- `errors`: The errors that AI agents and bots got.
- `cost`: What readers cost: all requests of access logs, with their bytes and times.
"""
