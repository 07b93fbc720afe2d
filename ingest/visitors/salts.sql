-- CREATE
CREATE TABLE IF NOT EXISTS visitor_salts (
    project_id VARCHAR(63) NOT NULL,
    day BIGINT NOT NULL,
    salt BYTEA NOT NULL,
    used_s BIGINT NOT NULL,
    PRIMARY KEY (project_id, day)
) WITHOUT ROWID;
-- Days on which most views of a source had one network.
CREATE TABLE IF NOT EXISTS visitor_majorities (
    project_id VARCHAR(63) NOT NULL,
    day BIGINT NOT NULL,
    source VARCHAR(10) NOT NULL,
    PRIMARY KEY (project_id, day, source)
) WITHOUT ROWID

-- UNLOG postgresql
-- No write-ahead log, and therefore no archive, replica or base backup, has the salts. A crash of the server loses them.
ALTER TABLE visitor_salts SET UNLOGGED

-- UNLOG sqlite
SELECT 1

-- SALT
INSERT INTO visitor_salts (project_id, day, salt, used_s) VALUES (:project, :day, :salt, :now_s)
ON CONFLICT (project_id, day) DO UPDATE SET used_s = excluded.used_s
RETURNING salt

-- ADD_MAJORITY
INSERT INTO visitor_majorities (project_id, day, source) VALUES (:project, :day, :source) ON CONFLICT DO NOTHING

-- MAJORITIES
SELECT source, count(*), max(day) FROM visitor_majorities WHERE project_id = :project AND day >= :since
GROUP BY source ORDER BY source

-- DELETE_OLD_MAJORITIES
DELETE FROM visitor_majorities WHERE day < :since

-- DELETE_MAJORITIES_OF_PROJECT
DELETE FROM visitor_majorities WHERE project_id = :project

-- DELETE_EXPIRED
DELETE FROM visitor_salts WHERE (day + 1) * 86400 <= :until_s AND used_s <= :until_s

-- DELETE_OF_PROJECT
DELETE FROM visitor_salts WHERE project_id = :project

-- REWRITE postgresql
-- A deleted row stays in the table's file until the file is replaced.
VACUUM FULL visitor_salts

-- REWRITE sqlite
-- `secure_delete` alone leaves copies of rows that a split of a page has moved.
VACUUM
