"""The pages, one module each.

- `entry`: the ways in and out: sign-in, one-time links, the account.
- `settings`: pages that change a project.
- `reading`: pages that show who reads.
- `jobs`: agent jobs of a project: prompts, logs and pull requests.
"""
