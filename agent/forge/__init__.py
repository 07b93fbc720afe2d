"""Pull requests at GitHub, GitLab, Gitea and Forgejo.

- `pull_request`: find or create the pull request of a branch.
- `forges`: differences between the APIs of the forges, one record per forge, with links to their documentation.
"""
