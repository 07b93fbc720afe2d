"""Generated hits.

- `traffic`: distributions of generated hits.
- `generate_log`: an access log of generated hits.
"""
