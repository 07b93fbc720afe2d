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

-- CHANGES
SELECT since_s
FROM (
    SELECT since_s, content, lag(content) OVER (ORDER BY since_s) AS before
    FROM robots_versions WHERE project_id = :project
) AS versions
WHERE before IS NULL OR before <> content
ORDER BY since_s

-- VERSIONS
SELECT content, since_s FROM robots_versions WHERE project_id = :project ORDER BY since_s

-- DELETE
DELETE FROM robots_versions WHERE project_id = :project AND since_s = :since_s
