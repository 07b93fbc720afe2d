-- CREATE
CREATE TABLE IF NOT EXISTS robots_texts (
    project_id VARCHAR(63) PRIMARY KEY NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    content TEXT NOT NULL,
    saved_s BIGINT NOT NULL
)

-- SAVE
INSERT INTO robots_texts (project_id, content, saved_s) VALUES (:project, :content, :saved_s)
ON CONFLICT (project_id) DO UPDATE SET content = excluded.content, saved_s = excluded.saved_s

-- TEXT
SELECT content, saved_s FROM robots_texts WHERE project_id = :project

-- DELETE
DELETE FROM robots_texts WHERE project_id = :project
