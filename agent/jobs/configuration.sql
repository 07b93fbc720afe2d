-- CREATE
CREATE TABLE IF NOT EXISTS agent_configurations (
    project_id VARCHAR(63) PRIMARY KEY NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    content JSON NOT NULL
)

-- CONTENT
SELECT CAST(content AS TEXT) FROM agent_configurations WHERE project_id = :project

-- PUT
INSERT INTO agent_configurations (project_id, content) VALUES (:project, :content)
ON CONFLICT (project_id) DO UPDATE SET content = excluded.content

-- DELETE
DELETE FROM agent_configurations WHERE project_id = :project
