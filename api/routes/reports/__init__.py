"""The reports over HTTP.

- `views`: the export of page views.
"""
