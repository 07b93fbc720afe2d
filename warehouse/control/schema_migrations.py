"""Migrations that bring the control database to its newest schema version."""

import json
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from warehouse import migrations
from warehouse.database.postgresql import PostgresqlConnection
from warehouse.database.statements import Connection, Statements, has_table
from warehouse.migrations import Migration

STORE = "the control database"
"""Name of the store in messages."""
RESTORE = "restore it from a backup; without one, move it out of the folder and run readership recover"
"""Advice for a damaged control database, in messages."""
_STATEMENTS = Statements(Path(__file__).with_suffix(".sql"))

Migrations = Sequence[Migration[Connection]]


def pending(version: int | None, known: Migrations | None = None) -> Migrations:
    """Return the migrations that a control database still needs. `version` is None if it records no version.

    Raises:
        StoreTooNew: a newer release wrote the database.
    """
    return migrations.pending(STORE, version or migrations.FIRST, MIGRATIONS if known is None else known)


def _add_internal_ids(connection: Connection) -> None:
    """Give each project an internal id that is never reused, not even after the project's deletion."""
    migrations.add_column("projects", "internal_id VARCHAR(32) NOT NULL DEFAULT ''")(connection)
    if has_table(connection, "projects"):
        for (id,) in _STATEMENTS.run(connection, "PROJECTS").fetchall():
            _STATEMENTS.run(connection, "SET_INTERNAL_ID", {"id": id, "internal_id": uuid.uuid4().hex})


def widen_text(table: str, column: str, characters: int) -> Callable[[Connection], None]:
    """Return a migration that raises the maximum length of a text column. SQLite enforces no maximum."""

    def apply(connection: Connection) -> None:
        if isinstance(connection, PostgresqlConnection) and has_table(connection, table):
            connection.execute(f"ALTER TABLE {table} ALTER COLUMN {column} TYPE VARCHAR({characters})")

    return apply


def _add_coding_agents(connection: Connection) -> None:
    """Record in each agent job and each stored response the coding agent that its project is configured with."""
    if not has_table(connection, "jobs"):
        return
    connection.execute("ALTER TABLE jobs ADD COLUMN preset TEXT NOT NULL DEFAULT 'opencode'")
    connection.execute("ALTER TABLE jobs ADD COLUMN command JSON NOT NULL DEFAULT '[]'")
    agents = {}
    for project, content in _STATEMENTS.run(connection, "CONFIGURATIONS").fetchall():
        chosen = json.loads(content)
        agents[project] = agent = {name: chosen.get(name, value) for name, value in _FIRST_CODING_AGENT.items()}
        values = {"project": project, "preset": agent["preset"], "command": json.dumps(agent["command"])}
        _STATEMENTS.run(connection, "SET_CODING_AGENT", values)
    for project, operation, key, answer in _STATEMENTS.run(connection, "ANSWERS").fetchall():
        changed = json.dumps({**json.loads(answer), **agents.get(project, _FIRST_CODING_AGENT)})
        values = {"project": project, "operation": operation, "key": key, "answer": changed}
        _STATEMENTS.run(connection, "SET_ANSWER", values)


def _version_robots(connection: Connection) -> None:
    """Let a project have several texts of robots.txt, each with the time from which it is in force."""
    if has_table(connection, "robots_texts"):
        for name in ("CREATE_ROBOTS_VERSIONS", "COPY_ROBOTS_TEXTS", "DROP_ROBOTS_TEXTS"):
            _STATEMENTS.run(connection, name)


_FIRST_CODING_AGENT: dict[str, object] = {"preset": "opencode", "command": []}
"""Coding agent of a configuration of 0.1.0 that names no coding agent."""
MIGRATIONS: Migrations = (
    Migration(2, _add_internal_ids),
    Migration(3, widen_text("keys", "scope", 10)),
    Migration(4, _add_coding_agents),
    Migration(5, migrations.add_column("keys", "start VARCHAR(20) NOT NULL DEFAULT ''")),
    Migration(
        6, lambda connection: None
    ),  # an older release, which would not apply the new source_policies, is refused
    Migration(7, migrations.add_column("share_links", "pages VARCHAR(8) NOT NULL DEFAULT 'overview'")),
    Migration(8, _version_robots),
)
