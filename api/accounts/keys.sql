-- CREATE
CREATE TABLE IF NOT EXISTS keys (
    id VARCHAR(12) PRIMARY KEY NOT NULL,
    project_id VARCHAR(63) NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    name VARCHAR(200) NOT NULL,
    scope VARCHAR(10) NOT NULL,
    sha256 VARCHAR(64) NOT NULL UNIQUE,
    created_s BIGINT NOT NULL,
    expires_s BIGINT,
    revoked_s BIGINT,
    last_used_s BIGINT,
    start VARCHAR(20) DEFAULT '' NOT NULL
);
CREATE INDEX IF NOT EXISTS ix_keys_project_id ON keys (project_id)

-- ADD
INSERT INTO keys (id, project_id, name, scope, sha256, created_s, expires_s, start)
VALUES (:id, :project, :name, :scope, :sha256, :created_s, :expires_s, :start)
ON CONFLICT (id) DO NOTHING

-- OF_PROJECT
SELECT id, project_id, name, scope, created_s, expires_s, revoked_s, last_used_s, start FROM keys
WHERE project_id = coalesce(:project, project_id)
ORDER BY created_s, id

-- MATCHES
SELECT id, project_id, name, scope, created_s, expires_s, revoked_s, last_used_s, start FROM keys
WHERE project_id = coalesce(:project, project_id) AND (
    :text <> '' AND (id = :text OR name = :text OR sha256 = :sha256) OR :start <> '' AND start = :start
)
ORDER BY created_s, id

-- LOCK
SELECT id, project_id, name, scope, created_s, expires_s, revoked_s, last_used_s, start FROM keys
WHERE id = :id FOR UPDATE

-- BY_TOKEN
SELECT
    keys.id, project_id, name, scope, keys.created_s, expires_s, revoked_s, last_used_s, start, internal_id
FROM keys JOIN projects ON projects.id = project_id
WHERE sha256 = :sha256

-- REVOKE
UPDATE keys SET revoked_s = :now_s WHERE id = :id

-- REVOKE_OF_PROJECT
UPDATE keys SET revoked_s = coalesce(revoked_s, :now_s)
WHERE project_id IN (SELECT id FROM projects WHERE id = :project AND internal_id = :internal_id)

-- SET_LAST_USE
UPDATE keys SET last_used_s = :now_s WHERE id = :id

-- DELETE_OF_DEMO
DELETE FROM keys WHERE project_id = :project AND name = :project AND scope = 'write' AND created_s <= :until_s
