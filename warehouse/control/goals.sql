-- CREATE
CREATE TABLE IF NOT EXISTS goals (
    project_id VARCHAR(63) NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    id VARCHAR(12) NOT NULL,
    name VARCHAR(120) NOT NULL,
    kind VARCHAR(5) NOT NULL,
    value VARCHAR(2048) NOT NULL,
    created_s BIGINT NOT NULL,
    PRIMARY KEY (project_id, id),
    UNIQUE (project_id, name)
)

-- OF_PROJECT
SELECT id, name, kind, value, created_s FROM goals WHERE project_id = :project

-- ADD
INSERT INTO goals (project_id, id, name, kind, value, created_s)
VALUES (:project, :id, :name, :kind, :value, :created_s)

-- REMOVE
DELETE FROM goals WHERE project_id = :project AND id = :id RETURNING name
