"""The command `demo`: a service with sample projects.

- `command`: The command `demo`, which fills an empty data folder, prints an export and commands to try, and serves.
- `sample_projects`: The sample projects, with their views, keys, share link, goals, robots.txt and agent jobs.
- `sample_views`: The views of the sample projects, with recent days.
"""
