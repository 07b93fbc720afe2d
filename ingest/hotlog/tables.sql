-- Tables of event ids, Idempotency-Keys and new values in the hot log.

-- CREATE
CREATE TABLE IF NOT EXISTS event_ids (id BYTEA PRIMARY KEY NOT NULL, seen_s BIGINT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS event_ids_seen ON event_ids (seen_s);
CREATE TABLE IF NOT EXISTS answers (
    project_id TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint BYTEA NOT NULL,
    receipt BYTEA NOT NULL,
    seen_s BIGINT NOT NULL,
    PRIMARY KEY (project_id, key)
) WITHOUT ROWID;
-- Values of hits without a key, each with the last day on which it was stored.
CREATE TABLE IF NOT EXISTS seen_values (id BYTEA PRIMARY KEY NOT NULL, day BIGINT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS seen_values_day ON seen_values (day);
-- Numbers of new values by project, day and column, and of hits whose value was above the limit.
CREATE TABLE IF NOT EXISTS new_value_days (
    project_id TEXT NOT NULL,
    day BIGINT NOT NULL,
    "column" TEXT NOT NULL,
    "values" BIGINT NOT NULL,
    other_hits BIGINT NOT NULL,
    PRIMARY KEY (project_id, day, "column")
) WITHOUT ROWID

-- COPY_FOR_BEACONS sqlite
INSERT INTO event_ids (id, seen_s) SELECT CAST(id || x'62' AS BLOB), seen_s FROM event_ids WHERE length(id) = 24
ON CONFLICT DO NOTHING

-- COPY_FOR_BEACONS postgresql
INSERT INTO event_ids (id, seen_s) SELECT id || '\x62'::bytea, seen_s FROM event_ids WHERE length(id) = 24
ON CONFLICT DO NOTHING

-- ADD_EVENT_ID
-- Add an event id, or renew one that has expired.
INSERT INTO event_ids (id, seen_s) VALUES (:id, :now_s)
ON CONFLICT (id) DO UPDATE SET seen_s = excluded.seen_s WHERE event_ids.seen_s <= :since_s

-- ADD_MANY_EVENT_IDS
INSERT INTO event_ids (id, seen_s) VALUES [(:id#, :now_s)] * 100
ON CONFLICT (id) DO UPDATE SET seen_s = excluded.seen_s WHERE event_ids.seen_s <= :since_s

-- KNOWN_EVENT_IDS
-- Without `+ 0`, SQLite would search by time and not by id.
SELECT id FROM event_ids WHERE id IN ([:id#] * 100) AND seen_s + 0 > :since_s

-- ADD_KNOWN_EVENT_ID
INSERT INTO event_ids (id, seen_s) VALUES (:id, :now_s) ON CONFLICT DO NOTHING

-- DELETE_EXPIRED_EVENT_IDS
DELETE FROM event_ids WHERE id IN (SELECT id FROM event_ids WHERE seen_s <= :until_s LIMIT :limit)

-- DELETE_EVENT_IDS_OF_PROJECT
DELETE FROM event_ids WHERE id IN (SELECT id FROM event_ids WHERE id BETWEEN :first AND :last LIMIT :limit)

-- EARLIER_ANSWER
SELECT fingerprint, receipt FROM answers WHERE project_id = :project AND key = :key AND seen_s > :since_s

-- ADD_ANSWER
INSERT INTO answers (project_id, key, fingerprint, receipt, seen_s)
VALUES (:project, :key, :fingerprint, :receipt, :now_s)
ON CONFLICT (project_id, key) DO UPDATE SET
    fingerprint = excluded.fingerprint, receipt = excluded.receipt, seen_s = excluded.seen_s

-- DELETE_EXPIRED_ANSWERS
DELETE FROM answers
WHERE (project_id, key) IN (SELECT project_id, key FROM answers WHERE seen_s <= :until_s LIMIT :limit)

-- DELETE_ANSWERS_OF_PROJECT
DELETE FROM answers
WHERE (project_id, key) IN (SELECT project_id, key FROM answers WHERE project_id = :project LIMIT :limit)

-- SEEN_VALUE
SELECT id, day FROM seen_values WHERE id = :id

-- HAS_SEEN_VALUE
SELECT 1 FROM seen_values LIMIT 1

-- ADD_SEEN_VALUE
INSERT INTO seen_values (id, day) VALUES (:id, :day) ON CONFLICT (id) DO UPDATE SET day = excluded.day

-- DELETE_UNSEEN_VALUES
DELETE FROM seen_values WHERE id IN (SELECT id FROM seen_values WHERE day <= :until_day LIMIT :limit)

-- DELETE_VALUES_OF_PROJECT
DELETE FROM seen_values WHERE id IN (SELECT id FROM seen_values WHERE id BETWEEN :first AND :last LIMIT :limit)

-- NEW_VALUES
SELECT "values" FROM new_value_days WHERE project_id = :project AND day = :day AND "column" = :column

-- COUNT_NEW_VALUES
INSERT INTO new_value_days (project_id, day, "column", "values", other_hits)
VALUES (:project, :day, :column, :values, :hits)
ON CONFLICT (project_id, day, "column") DO UPDATE SET
    "values" = new_value_days."values" + excluded."values",
    other_hits = new_value_days.other_hits + excluded.other_hits

-- CAPPED_DAYS
SELECT day, "column", other_hits FROM new_value_days
WHERE project_id = :project AND other_hits > 0
ORDER BY day, "column"

-- DELETE_OLD_VALUE_DAYS
DELETE FROM new_value_days
WHERE (project_id, day, "column") IN (
    SELECT project_id, day, "column" FROM new_value_days WHERE day <= :until_day LIMIT :limit
)

-- DELETE_VALUE_DAYS_OF_PROJECT
DELETE FROM new_value_days
WHERE (project_id, day, "column") IN (
    SELECT project_id, day, "column" FROM new_value_days WHERE project_id = :project LIMIT :limit
)
