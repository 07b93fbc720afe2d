"""The reference: the operations of `api.routes` and `api.reports` as an OpenAPI document.

- `components`: response headers and JSON schemas.
- `prose`: the Markdown file of each operation, and its HTML.
- `openapi`: the OpenAPI document.
- `reference`: the document of one service, with its address.
"""
