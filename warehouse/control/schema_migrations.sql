-- Statements of the steps, which name only tables and columns of their version.

-- PROJECTS
SELECT id FROM projects

-- SET_INTERNAL_ID
UPDATE projects SET internal_id = :internal_id WHERE id = :id

-- CONFIGURATIONS
SELECT project_id, CAST(content AS TEXT) FROM agent_configurations

-- SET_CODING_AGENT
UPDATE jobs SET preset = :preset, command = :command WHERE project_id = :project

-- ANSWERS
SELECT project_id, operation, key, CAST(answer AS TEXT) FROM job_answers

-- SET_ANSWER
UPDATE job_answers SET answer = :answer WHERE project_id = :project AND operation = :operation AND key = :key

-- CREATE_ROBOTS_VERSIONS
CREATE TABLE robots_versions (
    project_id VARCHAR(63) NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    since_s BIGINT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (project_id, since_s)
)

-- COPY_ROBOTS_TEXTS
INSERT INTO robots_versions (project_id, since_s, content) SELECT project_id, saved_s, content FROM robots_texts

-- DROP_ROBOTS_TEXTS
DROP TABLE robots_texts
