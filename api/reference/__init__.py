"""The OpenAPI description of the HTTP API and its page.

- `schemas`: What the description's answers and bodies are made of: schemas of the structs, headers, problems, and
  their words.
- `openapi`: The OpenAPI 3.1 description of every route. Limits are the constants that are enforced, bodies the
  structs.
- `openapi_jobs`: The part of the OpenAPI description that is about agent jobs.
- `samples`: Lines to paste, for each operation.
- `page`: The description as JSON for programs, and as a page for people.
"""
