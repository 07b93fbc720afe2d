-- CREATE()
CREATE TABLE IF NOT EXISTS read_logs ( id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, project_id TEXT NOT NULL, parent INTEGER NOT NULL, first BLOB NOT NULL, bytes INTEGER NOT NULL, digest BLOB NOT NULL, marks BLOB NOT NULL, is_cut INTEGER NOT NULL, read_s INTEGER NOT NULL, key_check BLOB NOT NULL );
CREATE INDEX IF NOT EXISTS read_logs_after ON read_logs (project_id, parent, first)

-- NEWEST_ID()
SELECT coalesce(max(read_logs.id), 0) AS coalesce_1 FROM read_logs

-- CHILDREN(project parent first no_line)
SELECT read_logs.id, read_logs.bytes, read_logs.digest, read_logs.marks, read_logs.is_cut FROM read_logs WHERE read_logs.project_id = ? AND read_logs.parent = ? AND (read_logs.first = ? OR read_logs.first = ?) ORDER BY read_logs.bytes DESC

-- RIVALS(project parent other_parent newest_id)
SELECT 1 FROM read_logs WHERE read_logs.project_id = ? AND (read_logs.parent = ? OR read_logs.parent = ?) AND read_logs.id > ?

-- RIVALS_WITH_FIRST_LINE(project parent other_parent newest_id first no_line)
SELECT 1 FROM read_logs WHERE read_logs.project_id = ? AND (read_logs.parent = ? OR read_logs.parent = ?) AND read_logs.id > ? AND (read_logs.first = ? OR read_logs.first = ?)

-- UNCHANGED(id bytes)
SELECT 1 FROM read_logs WHERE read_logs.id = ? AND read_logs.bytes = ?

-- ADD(project parent first bytes digest marks is_cut read_s key_check)
INSERT INTO read_logs (project_id, parent, first, bytes, digest, marks, is_cut, read_s, key_check) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id

-- ADD_KEYED(id project parent first bytes digest marks is_cut read_s key_check)
INSERT INTO read_logs (id, project_id, parent, first, bytes, digest, marks, is_cut, read_s, key_check) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- EXTEND(first bytes digest marks is_cut read_s key_check id bytes_before)
UPDATE read_logs SET first=?, bytes=?, digest=?, marks=?, is_cut=?, read_s=?, key_check=? WHERE read_logs.id = ? AND read_logs.bytes = ? AND NOT (EXISTS (SELECT 1 FROM read_logs AS later WHERE later.project_id = read_logs.project_id AND later.parent = read_logs.id))

-- UNKEYED()
SELECT unkeyed_logs.id, unkeyed_logs.project_id, unkeyed_logs.parent, unkeyed_logs.first, unkeyed_logs.bytes, unkeyed_logs.digest, unkeyed_logs.marks, unkeyed_logs.is_cut FROM unkeyed_logs

-- FOREIGN_UNTIL(project key_check)
SELECT coalesce(max(read_logs.read_s), 0) AS coalesce_1 FROM read_logs WHERE read_logs.project_id = ? AND read_logs.key_check != ?

-- DELETE_BEFORE(until_s until_s)
WITH RECURSIVE since(parent) AS (SELECT read_logs.parent AS parent FROM read_logs WHERE read_logs.read_s >= ? UNION SELECT read_logs.parent AS parent FROM read_logs JOIN since ON read_logs.id = since.parent) DELETE FROM read_logs WHERE read_logs.read_s < ? AND (read_logs.id NOT IN (SELECT since.parent FROM since))

-- DELETE_OF_PROJECT(project)
DELETE FROM read_logs WHERE read_logs.project_id = ?
