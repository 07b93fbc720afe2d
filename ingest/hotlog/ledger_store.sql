-- Table of the ledger of imported logs in the hot log.

-- CREATE
-- Chunks. `first` is the digest of the first line, `marks` are the checkpoints, and `is_cut` is 1 if the chunk ends
-- inside a line. `read_s` is the time at which the chunk was last read, in seconds since 1970. All digests are keyed,
-- and `key_check` differs between keys.
CREATE TABLE IF NOT EXISTS read_logs (
    id BIGSERIAL PRIMARY KEY,
    project_id TEXT NOT NULL,
    parent BIGINT NOT NULL,
    first BYTEA NOT NULL,
    bytes BIGINT NOT NULL,
    digest BYTEA NOT NULL,
    marks BYTEA NOT NULL,
    is_cut BIGINT NOT NULL,
    read_s BIGINT NOT NULL,
    key_check BYTEA NOT NULL
);
CREATE INDEX IF NOT EXISTS read_logs_after ON read_logs (project_id, parent, first)

-- BEGIN_TEMPORARY sqlite
CREATE TEMP TABLE read_logs (
    id INTEGER PRIMARY KEY, project_id, parent, first, bytes, digest, marks, is_cut, read_s, key_check
);
CREATE INDEX temp.read_logs_after ON read_logs (project_id, parent, first);
INSERT INTO temp.read_logs SELECT * FROM main.read_logs

-- BEGIN_TEMPORARY postgresql
CREATE TEMP TABLE read_logs (LIKE read_logs INCLUDING INDEXES);
INSERT INTO pg_temp.read_logs SELECT * FROM hot_log.read_logs;
CREATE TEMP SEQUENCE read_logs_id;
SELECT setval('pg_temp.read_logs_id', coalesce(max(id), 0) + 1) FROM pg_temp.read_logs;
ALTER TABLE pg_temp.read_logs ALTER COLUMN id SET DEFAULT nextval('pg_temp.read_logs_id')

-- END_TEMPORARY sqlite
DROP TABLE temp.read_logs

-- END_TEMPORARY postgresql
DISCARD TEMP

-- NEWEST_ID
SELECT coalesce(max(id), 0) FROM read_logs

-- CHILDREN
SELECT id, bytes, digest, marks, is_cut FROM read_logs
WHERE project_id = :project AND parent = :parent AND first IN (:first, :earlier_first, :no_line)
ORDER BY bytes DESC

-- RIVALS
SELECT 1 FROM read_logs
WHERE project_id = :project AND (parent = :parent OR parent = :other_parent) AND id > :newest_id

-- RIVALS_WITH_FIRST_LINE
SELECT 1 FROM read_logs
WHERE project_id = :project AND (parent = :parent OR parent = :other_parent) AND id > :newest_id
AND (first = :first OR first = :no_line)

-- UNCHANGED
SELECT 1 FROM read_logs WHERE id = :id AND bytes = :bytes

-- ADD
INSERT INTO read_logs (project_id, parent, first, bytes, digest, marks, is_cut, read_s, key_check)
VALUES (:project, :parent, :first, :bytes, :digest, :marks, :is_cut, :read_s, :key_check)
RETURNING id

-- ADD_KEYED
INSERT INTO read_logs (id, project_id, parent, first, bytes, digest, marks, is_cut, read_s, key_check)
VALUES (:id, :project, :parent, :first, :bytes, :digest, :marks, :is_cut, :read_s, :key_check)

-- EXTEND
UPDATE read_logs SET
    first = :first, bytes = :bytes, digest = :digest, marks = :marks,
    is_cut = :is_cut, read_s = :read_s, key_check = :key_check
WHERE id = :id AND bytes = :bytes_before AND NOT EXISTS (
    SELECT 1 FROM read_logs AS later WHERE later.project_id = read_logs.project_id AND later.parent = read_logs.id
)

-- UNKEYED
-- Chunks of an older release, with unkeyed digests.
SELECT id, project_id, parent, first, bytes, digest, marks, is_cut FROM unkeyed_logs

-- END_KEYING sqlite
DROP TABLE unkeyed_logs

-- END_KEYING postgresql
DROP TABLE unkeyed_logs;
SELECT setval(pg_get_serial_sequence('read_logs', 'id'), max(id)) FROM read_logs

-- FOREIGN_UNTIL
SELECT coalesce(max(read_s), 0) FROM read_logs WHERE project_id = :project AND key_check <> :key_check

-- DELETE_BEFORE
-- `since` has the ids of the chunks before those that were read since, up to the start of their logs, and 0.
WITH RECURSIVE since(parent) AS (
    SELECT parent FROM read_logs WHERE read_s >= :until_s
    UNION SELECT read_logs.parent FROM read_logs JOIN since ON read_logs.id = since.parent
)
DELETE FROM read_logs WHERE read_s < :until_s AND id NOT IN (SELECT parent FROM since)

-- DELETE_OF_PROJECT
DELETE FROM read_logs WHERE project_id = :project
