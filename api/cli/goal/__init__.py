"""The command `goal`.

- `command`: The command `goal`: the goals of a project, and with them the conversions of its visitors.
"""
