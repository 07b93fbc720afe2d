-- CREATE
CREATE TABLE IF NOT EXISTS robots_versions (
    project_id VARCHAR(63) NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    since_s BIGINT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (project_id, since_s)
)

-- SAVE
INSERT INTO robots_versions (project_id, since_s, content) VALUES (:project, :since_s, :content)
ON CONFLICT (project_id, since_s) DO UPDATE SET content = excluded.content

-- VERSIONS
SELECT content, since_s FROM robots_versions WHERE project_id = :project ORDER BY since_s

-- DELETE
DELETE FROM robots_versions WHERE project_id = :project AND since_s = :since_s
