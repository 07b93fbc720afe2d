"""Clone, commit and push of a job.

- `remote`: URL, base branch and token of a repository.
- `commands`: git commands without hooks, configuration files or credentials of the machine.
- `changed_files`: changes that no turn commits: too many or too large files, and files that configure CI.
- `workspace`: folder of a job: checkout, commit and push.
- `askpass.sh`: program that answers when git asks for the user name and the token.
"""
