"""Clone, commit and push of a job.

- `remote`: URL, base branch and token of a repository.
- `commands`: git commands without hooks, configuration files or credentials of the machine.
- `ci_files`: files that configure CI, whose changes are refused.
- `changed_files`: limits of the files that one commit changes.
- `workspace`: folder of a job: checkout, commit and push.
- `askpass.sh`: program that answers when git asks for the user name and the token.
"""
