-- CREATE()
CREATE TABLE IF NOT EXISTS batches ( id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, rows INTEGER NOT NULL, committed_s REAL NOT NULL, message BLOB NOT NULL, checksum BLOB, columns INTEGER, bytes INTEGER DEFAULT 0 NOT NULL );
CREATE TABLE IF NOT EXISTS loads ( through_id INTEGER NOT NULL, loaded_s REAL NOT NULL, bytes INTEGER NOT NULL, PRIMARY KEY (through_id) );
CREATE TABLE IF NOT EXISTS node ( id TEXT NOT NULL, generation INTEGER DEFAULT 0 NOT NULL, first_version INTEGER DEFAULT 0 NOT NULL );
CREATE TABLE IF NOT EXISTS refusals ( id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, internal_id TEXT NOT NULL, UNIQUE (internal_id) );
CREATE TABLE IF NOT EXISTS staged ( id INTEGER NOT NULL, files BLOB NOT NULL, PRIMARY KEY (id) );
CREATE TABLE IF NOT EXISTS synced_tables ( name TEXT NOT NULL, version INTEGER NOT NULL, last_batch INTEGER NOT NULL, PRIMARY KEY (name) );
CREATE INDEX IF NOT EXISTS batches_id_rows_bytes ON batches (id, rows, bytes)

-- NODE_ID()
SELECT node.id FROM node

-- ADD_NODE(id)
INSERT INTO node (id) VALUES (?)

-- TOUCH_NODE()
UPDATE node SET id=node.id

-- GENERATION()
SELECT node.generation FROM node

-- FIRST_VERSION()
SELECT node.first_version FROM node

-- REVOKE_MOMENTS(version)
UPDATE node SET generation=(node.generation + 1), first_version=?

-- RAISE_GENERATION(generation generation)
UPDATE node SET generation=? WHERE node.generation < ?

-- APPEND(rows now_s message checksum columns bytes)
INSERT INTO batches (rows, committed_s, message, checksum, columns, bytes) VALUES (?, ?, ?, ?, ?, ?)

-- APPEND_IF_NONE_REFUSED(rows now_s message checksum columns bytes last_refusal)
INSERT INTO batches (rows, committed_s, message, checksum, columns, bytes) SELECT ? AS anon_1, ? AS anon_2, ? AS anon_3, ? AS anon_4, ? AS anon_5, ? AS anon_6 WHERE NOT (EXISTS (SELECT 1 FROM refusals WHERE refusals.id > ?))

-- APPEND_RETURNING_ID(rows now_s message checksum columns bytes)
INSERT INTO batches (rows, committed_s, message, checksum, columns, bytes) VALUES (?, ?, ?, ?, ?, ?) RETURNING id

-- ADD_STAGED(id files)
INSERT INTO staged (id, files) VALUES (?, ?)

-- BETWEEN(offset last_id)
SELECT batches.id, batches.message, batches.columns, staged.files, batches.checksum FROM batches LEFT OUTER JOIN staged ON batches.id = staged.id WHERE batches.id > ? AND batches.id <= ? ORDER BY batches.id

-- WAITING(offset offset)
SELECT batches.id, batches.message, batches.columns, staged.files, batches.checksum FROM batches LEFT OUTER JOIN staged ON batches.id = staged.id WHERE batches.id > CASE WHEN (? > (SELECT coalesce(max(loads.through_id), 0) AS coalesce_1 FROM loads)) THEN ? ELSE (SELECT coalesce(max(loads.through_id), 0) AS coalesce_1 FROM loads) END ORDER BY batches.id

-- WAITING_ROWS()
SELECT batches.id, batches.rows, batches.message, batches.columns FROM batches WHERE batches.id > (SELECT coalesce(max(loads.through_id), 0) AS coalesce_1 FROM loads) AND (batches.id NOT IN (SELECT staged.id FROM staged)) ORDER BY batches.id

-- STAGED_ABOVE(offset)
SELECT staged.id, staged.files FROM staged WHERE staged.id > ? ORDER BY staged.id

-- LAST_ID()
SELECT sqlite_sequence.seq FROM sqlite_sequence WHERE sqlite_sequence.name = 'batches'

-- RAISE_LAST_ID(id id)
UPDATE sqlite_sequence SET seq=? WHERE sqlite_sequence.name = 'batches' AND sqlite_sequence.seq < ?

-- ADD_LAST_ID(id)
INSERT INTO sqlite_sequence (name, seq) SELECT 'batches', ? AS anon_1 WHERE NOT (EXISTS (SELECT 1 FROM sqlite_sequence WHERE sqlite_sequence.name = 'batches'))

-- FIRST_ID()
SELECT min(batches.id) AS min_1 FROM batches

-- COUNT_WAITING(loaded)
SELECT coalesce(sum(batches.rows), 0) AS coalesce_1, coalesce(sum(batches.bytes), 0) AS coalesce_2 FROM batches WHERE batches.id > ?

-- OLDEST_WAITING(loaded)
SELECT batches.committed_s FROM batches WHERE batches.id > ? ORDER BY batches.id LIMIT 1 OFFSET 0

-- END_OF_PART(through batches_max bytes_max)
SELECT max(sums.id) AS max_1 FROM (SELECT part.id AS id, sum(part.bytes) OVER (ORDER BY part.id) - part.bytes AS bytes_before FROM (SELECT batches.id AS id, batches.bytes AS bytes FROM batches WHERE batches.id <= ? ORDER BY batches.id LIMIT ? OFFSET 0) AS part) AS sums WHERE sums.bytes_before < ?

-- DELETE_BATCHES(through)
DELETE FROM batches WHERE batches.id <= ?

-- DELETE_STAGED(through)
DELETE FROM staged WHERE staged.id <= ?

-- LOADED_THROUGH()
SELECT coalesce(max(loads.through_id), 0) AS coalesce_1 FROM loads

-- SIZE(after through)
SELECT coalesce(sum(batches.bytes + coalesce(length(staged.files), 0)), 0) AS coalesce_1 FROM batches LEFT OUTER JOIN staged ON batches.id = staged.id WHERE batches.id > ? AND batches.id <= ?

-- ADD_LOAD(through loaded_s bytes)
INSERT INTO loads (through_id, loaded_s, bytes) VALUES (?, ?, ?) ON CONFLICT DO NOTHING

-- LAST_DUE(now_s age_s bytes_max)
SELECT max(since.through_id) AS max_1 FROM (SELECT loads.through_id AS through_id, loads.loaded_s AS loaded_s, loads.bytes AS bytes, sum(loads.bytes) OVER (ORDER BY loads.through_id DESC) AS bytes_since FROM loads) AS since WHERE since.bytes > 0 AND (abs(? - since.loaded_s) >= ? OR since.bytes_since > ?)

-- EMPTY_LOADS(through)
UPDATE loads SET bytes=0 WHERE loads.through_id <= ?

-- DELETE_EMPTY_LOADS()
DELETE FROM loads WHERE loads.bytes = 0 AND loads.through_id < (SELECT max(every.through_id) AS max_1 FROM loads AS every)

-- DELETE_LOADS()
DELETE FROM loads

-- ADD_REFUSAL(internal_id)
INSERT INTO refusals (internal_id) VALUES (?) ON CONFLICT DO NOTHING

-- LAST_REFUSAL()
SELECT coalesce(max(refusals.id), 0) AS coalesce_1 FROM refusals

-- REFUSED()
SELECT refusals.internal_id FROM refusals

-- IS_REFUSED(internal_id)
SELECT 1 FROM refusals WHERE refusals.internal_id = ?

-- SYNCED()
SELECT synced_tables.name, synced_tables.version, synced_tables.last_batch FROM synced_tables

-- RECORD_SYNCED(name version last_batch)
INSERT INTO synced_tables (name, version, last_batch) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET version = CASE WHEN (synced_tables.version < excluded.version) THEN excluded.version ELSE synced_tables.version END, last_batch = CASE WHEN (synced_tables.last_batch < excluded.last_batch) THEN excluded.last_batch ELSE synced_tables.last_batch END WHERE synced_tables.version < excluded.version OR synced_tables.last_batch < excluded.last_batch

-- FORGET_SYNCED()
DELETE FROM synced_tables
