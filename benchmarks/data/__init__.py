"""Generated hits.

- `traffic`: distributions of generated hits.
- `line_formats`: the log lines of a request in each format.
- `generate_log`: an access log of generated hits.
"""
