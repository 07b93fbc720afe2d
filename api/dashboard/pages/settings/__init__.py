"""Pages that change a project.

- `source_policy`: which sources of a project count, for the page `setup`.
- `setup`: how to send views to a project, its origins, a test view, and what each source has sent.
- `recipes`: the configurations and programs that `setup` shows, filled in for a project.
- `keys`: the API keys of a project.
- `robots`: the robots.txt of a site, and what it allows AI agents.
- `goals`: pages and events that visitors should reach.
- `share`: share links, which show the overview of a project without an account.
- `audit_log`: who signed in, and who changed keys, share links and source policies.
"""
