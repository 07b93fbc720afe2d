-- The schema version of the control database, and its projects, to which most other tables refer.

-- CREATE
-- One row: the schema version of all tables, and the id of the database, which a restore or move preserves.
CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL, database_id VARCHAR(32) NOT NULL);
CREATE TABLE IF NOT EXISTS projects (
    id VARCHAR(63) PRIMARY KEY NOT NULL,
    origins JSON NOT NULL,
    created_s BIGINT NOT NULL,
    is_ending BOOLEAN NOT NULL,
    internal_id VARCHAR(32) DEFAULT '' NOT NULL
)

-- VERSION
SELECT version, database_id FROM schema_version

-- ADD_VERSION
INSERT INTO schema_version (version, database_id) VALUES (:version, :database_id)

-- SET_VERSION
UPDATE schema_version SET version = :version

-- HAS_PROJECT
SELECT 1 FROM projects LIMIT 1

-- WRITE_NOTHING
-- A read-only database refuses this, unlike BEGIN IMMEDIATE, which SQLite accepts there.
DELETE FROM projects WHERE 1 = 0

-- LOCK_SCHEMA postgresql
-- One process at a time changes tables. The key is `read` in ASCII.
SELECT pg_advisory_xact_lock(1919246692)

-- LOCK_SCHEMA sqlite
SELECT 1

-- ADD_PROJECT
INSERT INTO projects (id, origins, created_s, is_ending, internal_id)
VALUES (:id, :origins, :created_s, FALSE, :internal_id)
ON CONFLICT DO NOTHING

-- PROJECT
SELECT id, CAST(origins AS TEXT), created_s, internal_id FROM projects WHERE id = :id AND NOT is_ending

-- PROJECTS
SELECT id, CAST(origins AS TEXT), created_s, internal_id FROM projects WHERE NOT is_ending ORDER BY id

-- LOCK_PROJECT
SELECT CAST(origins AS TEXT) FROM projects WHERE id = :id AND NOT is_ending FOR NO KEY UPDATE

-- SET_ORIGINS
UPDATE projects SET origins = :origins WHERE id = :id

-- INTERNAL_ID
SELECT internal_id FROM projects WHERE id = :id

-- IS_ENDING
SELECT is_ending FROM projects WHERE id = :id

-- BEGIN_DELETION
UPDATE projects SET is_ending = TRUE
WHERE id = :id AND internal_id = coalesce(:internal_id, internal_id)
RETURNING internal_id

-- DELETE_PROJECT
DELETE FROM projects WHERE id = :id AND internal_id = coalesce(:internal_id, internal_id)
