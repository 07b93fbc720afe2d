"""Pull requests at GitHub, GitLab, Gitea, Forgejo and Pagure.

- `pull_request`: The pull request of a branch: the open one if there is one, else a new one.
- `forges`: What differs from code host to code host: a row each. The words of their documentation are at each row.
- `response`: What a code host's answer says beside what was asked for: why not, and when to ask again.
"""
