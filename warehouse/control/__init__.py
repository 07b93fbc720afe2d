"""The control database and the projects in it.

- `schema_migrations`: Migrations that bring the control database to its newest schema version.
- `database`: Control database: small tables that are updated in place and shared by all processes.
- `projects`: Projects: sites with separate views, each with the origins whose beacons it accepts.
- `audit`: Audit log of sign-ins and of changes of keys, share links, source policies and goals.
- `policy`: Source policies: which sources of a project count.
- `source_policies`: Table of the source policies of projects.
- `goals`: Goals of projects: definitions that reports apply to stored hits and events.
- `store_secret`: Random bytes of a store that key its hashes of request bodies.
"""
