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
