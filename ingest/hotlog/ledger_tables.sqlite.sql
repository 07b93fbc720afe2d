-- CREATE()
CREATE TABLE IF NOT EXISTS read_logs ( id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, project_id TEXT NOT NULL, parent INTEGER NOT NULL, first BLOB NOT NULL, bytes INTEGER NOT NULL, digest BLOB NOT NULL, marks BLOB NOT NULL, is_cut INTEGER NOT NULL );
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

-- ADD(project parent first bytes digest marks is_cut)
INSERT INTO read_logs (project_id, parent, first, bytes, digest, marks, is_cut) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id

-- EXTEND(first bytes digest marks is_cut id bytes_before)
UPDATE read_logs SET first=?, bytes=?, digest=?, marks=?, is_cut=? WHERE read_logs.id = ? AND read_logs.bytes = ? AND NOT (EXISTS (SELECT 1 FROM read_logs AS later WHERE later.parent = read_logs.id))

-- DELETE_OF_PROJECT(project)
DELETE FROM read_logs WHERE read_logs.project_id = ?
