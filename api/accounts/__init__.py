"""Users and keys, and how they sign in: tables of the control database, without HTTP.

- `tokens`: random tokens of links and sessions, of which only hashes are stored.
- `passwords`: rules for passwords, and their argon2id hashes.
- `users`: users with their roles.
- `attempts`: limits on failed sign-ins, per account and per client address.
- `sessions`: sessions of signed-in browsers.
- `one_time_links`: links that create the first owner, set a password or sign in.
- `share_links`: read-only links to a project's overview.
- `keys`: API keys and their scopes.
"""
