"""The reference: the operations of `api.routes` and `api.reports` as an OpenAPI document.

- `components`: response headers and JSON schemas.
- `prose`: the Markdown file of each operation.
- `openapi`: the OpenAPI document.
- `markdown`: the prose as HTML.
- `reference`: the document of one service, with its address.
"""
