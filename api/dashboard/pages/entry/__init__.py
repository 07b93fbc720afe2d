"""Signing in and out of the dashboard.

- `authentication`: the check of a name and password, with the limits on attempts.
- `browser_session`: the session of the browser that sends a request, and the page to which a sign-in returns.
- `sign_in`: the sign-in, the sign-out, and `/`.
- `welcome`: one-time links: the first owner, a new password, the demo.
- `account`: the signed-in user: the password, all sessions, and for owners the list of users.
"""
