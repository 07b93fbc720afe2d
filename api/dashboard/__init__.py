"""The dashboard: pages rendered on the server.

- `accounts`: users, their sessions, and links that sign in or share a project.
"""
