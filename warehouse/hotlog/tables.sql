-- Tables of the hot log. Batch ids rise in commit order and without a gap: in SQLite by AUTOINCREMENT, in PostgreSQL by
-- a trigger that counts in a table which is named like SQLite's own.

-- CREATE
-- Rows and bytes of waiting batches are counted from the index, without reading their messages. `columns` is null for a
-- batch of an older release, and `kind`, the name of the rows' table, for a batch of `hits`.
CREATE TABLE IF NOT EXISTS batches (
    id BIGSERIAL PRIMARY KEY,
    rows BIGINT NOT NULL,
    committed_s DOUBLE PRECISION NOT NULL,
    message BYTEA NOT NULL,
    checksum BYTEA,
    columns BIGINT,
    bytes BIGINT DEFAULT 0 NOT NULL,
    kind TEXT
);
CREATE INDEX IF NOT EXISTS batches_id_rows_bytes ON batches (id, rows, bytes);
CREATE TABLE IF NOT EXISTS staged (id BIGINT PRIMARY KEY, files BYTEA NOT NULL);
-- One row for each load whose batches are in the hot log, and one for the newest load. `through_id` is the last batch
-- of the load, `loaded_s` its time in seconds since 1970, and `bytes` the size of its batches, 0 once they are deleted.
CREATE TABLE IF NOT EXISTS loads (
    through_id BIGINT PRIMARY KEY,
    loaded_s DOUBLE PRECISION NOT NULL,
    bytes BIGINT NOT NULL
);
-- One row: the node id, under which the lake records offsets, the generation of moments, which rises each time that all
-- moments are revoked, and the version of `hits` after the last erasure: versions before it have erased rows.
CREATE TABLE IF NOT EXISTS node (
    id TEXT NOT NULL,
    generation BIGINT DEFAULT 0 NOT NULL,
    first_version BIGINT DEFAULT 0 NOT NULL
);
CREATE TABLE IF NOT EXISTS refusals (id BIGSERIAL PRIMARY KEY, internal_id TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS synced_tables (
    name TEXT PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL,
    last_batch BIGINT NOT NULL
);

-- CREATE_SEQUENCES postgresql
-- The highest ids ever used, by the name of their table.
CREATE TABLE sqlite_sequence (name TEXT PRIMARY KEY, seq BIGINT NOT NULL);
CREATE TABLE schema_version (version BIGINT NOT NULL);
-- Arrow batches compress slowly and by little. The size of an uncompressed value is read without the value.
ALTER TABLE batches ALTER COLUMN message SET STORAGE EXTERNAL

-- NODE_ID
SELECT id FROM node

-- ADD_NODE
INSERT INTO node (id) VALUES (:id)

-- TOUCH_NODE
UPDATE node SET id = id

-- GENERATION
SELECT generation FROM node

-- FIRST_VERSION
SELECT first_version FROM node

-- REVOKE_MOMENTS
UPDATE node SET generation = generation + 1, first_version = :version

-- RAISE_GENERATION
UPDATE node SET generation = :generation WHERE generation < :generation

-- APPEND
INSERT INTO batches (rows, committed_s, message, checksum, columns, bytes, kind)
VALUES (:rows, :now_s, :message, :checksum, :columns, :bytes, :kind)

-- APPEND_IF_NONE_REFUSED
INSERT INTO batches (rows, committed_s, message, checksum, columns, bytes, kind)
SELECT :rows, :now_s, :message, :checksum, :columns, :bytes, :kind
WHERE NOT EXISTS (SELECT 1 FROM refusals WHERE id > :last_refusal)

-- APPEND_RETURNING_ID
INSERT INTO batches (rows, committed_s, message, checksum, columns, bytes, kind)
VALUES (:rows, :now_s, :message, :checksum, :columns, :bytes, :kind)
RETURNING id

-- ADD_STAGED
INSERT INTO staged (id, files) VALUES (:id, :files)

-- BETWEEN
SELECT batches.id, message, columns, kind, files, checksum
FROM batches LEFT JOIN staged ON batches.id = staged.id
WHERE batches.id > :offset AND batches.id <= :last_id
ORDER BY batches.id

-- WAITING
-- One bound: with two, SQLite reads the batches between them.
SELECT batches.id, message, columns, kind, files, checksum
FROM batches LEFT JOIN staged ON batches.id = staged.id
WHERE batches.id > CASE
    WHEN :offset > (SELECT coalesce(max(through_id), 0) FROM loads) THEN :offset
    ELSE (SELECT coalesce(max(through_id), 0) FROM loads)
END
ORDER BY batches.id

-- WAITING_ROWS
SELECT id, rows, message, columns, kind FROM batches
WHERE id > (SELECT coalesce(max(through_id), 0) FROM loads) AND id NOT IN (SELECT id FROM staged)
ORDER BY id

-- STAGED_ABOVE
SELECT id, files FROM staged WHERE id > :offset ORDER BY id

-- LAST_ID
SELECT seq FROM sqlite_sequence WHERE name = 'batches'

-- RAISE_LAST_ID
UPDATE sqlite_sequence SET seq = :id WHERE name = 'batches' AND seq < :id

-- ADD_LAST_ID
INSERT INTO sqlite_sequence (name, seq)
SELECT 'batches', :id WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'batches')

-- FIRST_ID
SELECT min(id) FROM batches

-- COUNT_WAITING
SELECT coalesce(sum(rows), 0), coalesce(sum(bytes), 0) FROM batches WHERE id > :loaded

-- OLDEST_WAITING
SELECT committed_s FROM batches WHERE id > :loaded ORDER BY id LIMIT 1

-- END_OF_PART
SELECT max(id) FROM (
    SELECT id, sum(bytes) OVER (ORDER BY id) - bytes AS bytes_before
    FROM (SELECT id, bytes FROM batches WHERE id <= :through ORDER BY id LIMIT :batches_max) AS part
) AS sums
WHERE bytes_before < :bytes_max

-- DELETE_BATCHES
DELETE FROM batches WHERE id <= :through

-- DELETE_STAGED
DELETE FROM staged WHERE id <= :through

-- LOADED_THROUGH
SELECT coalesce(max(through_id), 0) FROM loads

-- SIZE
SELECT coalesce(sum(bytes + coalesce(length(files), 0)), 0)
FROM batches LEFT JOIN staged ON batches.id = staged.id
WHERE batches.id > :after AND batches.id <= :through

-- ADD_LOAD
INSERT INTO loads (through_id, loaded_s, bytes) VALUES (:through, :loaded_s, :bytes) ON CONFLICT DO NOTHING

-- LAST_DUE
SELECT max(through_id) FROM (
    SELECT through_id, loaded_s, bytes, sum(bytes) OVER (ORDER BY through_id DESC) AS bytes_since FROM loads
) AS since
WHERE bytes > 0 AND (abs(:now_s - loaded_s) >= :age_s OR bytes_since > :bytes_max)

-- EMPTY_LOADS
UPDATE loads SET bytes = 0 WHERE through_id <= :through

-- DELETE_EMPTY_LOADS
DELETE FROM loads WHERE bytes = 0 AND through_id < (SELECT max(through_id) FROM loads)

-- DELETE_LOADS
DELETE FROM loads

-- ADD_REFUSAL
INSERT INTO refusals (internal_id) VALUES (:internal_id) ON CONFLICT DO NOTHING

-- LAST_REFUSAL
SELECT coalesce(max(id), 0) FROM refusals

-- REFUSED
SELECT internal_id FROM refusals

-- IS_REFUSED
SELECT 1 FROM refusals WHERE internal_id = :internal_id

-- SYNCED
SELECT name, version, last_batch FROM synced_tables

-- RECORD_SYNCED
INSERT INTO synced_tables (name, version, last_batch) VALUES (:name, :version, :last_batch)
ON CONFLICT (name) DO UPDATE SET
    version = CASE
        WHEN synced_tables.version < excluded.version THEN excluded.version ELSE synced_tables.version
    END,
    last_batch = CASE
        WHEN synced_tables.last_batch < excluded.last_batch THEN excluded.last_batch ELSE synced_tables.last_batch
    END
WHERE synced_tables.version < excluded.version OR synced_tables.last_batch < excluded.last_batch

-- FORGET_SYNCED
DELETE FROM synced_tables
