"""The reference: the operations of `api.routes` as an OpenAPI document and as an HTML page.

- `components`: response headers and JSON schemas.
- `prose`: the Markdown file of each operation.
- `openapi`: the OpenAPI document.
- `html`: HTML of texts, code and tables.
- `page`: the HTML page of the document.
- `reference`: the document and the page of one service, with its address.
"""
