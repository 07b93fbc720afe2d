"""Signing in and out of the dashboard.

- `own_path`: the page to which a sign-in returns, which is never one of another site.
- `authentication`: the check of a name and password, with the limits on attempts.
- `browser_session`: the session of the browser that sends a request.
- `sign_in`: the sign-in, the sign-out, and `/`.
- `welcome`: one-time links: the first owner, a new password, the demo.
- `account`: the signed-in user: the password, all sessions, and for owners the list of users.
"""
