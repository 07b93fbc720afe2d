"""The pages, one module each.

- `settings`: pages that change a project.
- `reading`: pages that show who reads.
"""
