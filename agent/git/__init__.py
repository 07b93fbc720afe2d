"""Git commands, remotes, and the checkout of a job.

- `commands`: One git command that trusts nothing but us: no hook, no configuration and no credential that is not
  given here.
- `remote`: A repository at its host: where it is, the branch that work starts from, and the token that opens it.
- `workspace`: The folder of one job: `git`, which the coding agent never sees, `tree`, which it works in, and `home`,
  its own.
"""
