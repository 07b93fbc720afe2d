-- CREATE
CREATE TABLE IF NOT EXISTS share_links (
    id VARCHAR(12) PRIMARY KEY NOT NULL,
    project_id VARCHAR(63) NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    name VARCHAR(100) NOT NULL,
    sha256 VARCHAR(64) NOT NULL UNIQUE,
    created_s BIGINT NOT NULL,
    revoked_s BIGINT,
    pages VARCHAR(8) NOT NULL DEFAULT 'overview'
);
CREATE INDEX IF NOT EXISTS ix_share_links_project_id ON share_links (project_id)

-- ADD
INSERT INTO share_links (id, project_id, name, sha256, created_s, pages)
VALUES (:id, :project, :name, :sha256, :created_s, :pages)

-- OF_PROJECT
SELECT id, project_id, name, created_s, revoked_s, pages FROM share_links WHERE project_id = :project ORDER BY created_s, id

-- BY_TOKEN
SELECT share_links.id, project_id, name, share_links.created_s, revoked_s, pages
FROM share_links JOIN projects ON projects.id = project_id
WHERE sha256 = :sha256 AND revoked_s IS NULL AND NOT is_ending

-- LOCK
SELECT id, project_id, name, created_s, revoked_s, pages FROM share_links WHERE id = :id FOR UPDATE

-- REVOKE
UPDATE share_links SET revoked_s = :now_s WHERE id = :id
