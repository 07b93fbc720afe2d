"""The pages, one module each.

- `reference`: the reference of the API.
- `entry`: signing in and out, one-time links, and the account.
- `settings`: pages that change a project.
- `reading`: pages that show who reads.
- `jobs`: agent jobs of a project: prompts, logs and pull requests.
"""
