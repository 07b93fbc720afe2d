"""The control database and the projects in it.

- `database`: The control database: what is small, changes in place and must be the same for every process.
- `schema_steps`: The steps that bring the control database to its newest schema version.
- `projects`: Projects: the sites whose views are kept apart, each with the origins whose beacons it takes.
- `project_check`: Whether a project stands, asked often by one that stores much for it.
"""
