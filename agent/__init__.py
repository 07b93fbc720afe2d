"""Agent jobs: a prompt becomes a pull request. Only its ground and its ends stand yet.

- `secret`: where a token or a key is, and what it is.
- `forge`, `code_host`, `host_answer`: the pull request of a branch at GitHub, GitLab, Gitea and Forgejo.
- `patience`: a host that does not answer is asked again.
- `process`: a program that ends when it must.
- `errors`: what can go wrong, without HTTP.
"""
