-- CREATE
CREATE TABLE IF NOT EXISTS source_policies (
    project_id VARCHAR(63) NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    from_date DATE NOT NULL,
    policy VARCHAR(40) NOT NULL,
    PRIMARY KEY (project_id, from_date)
)

-- PERIODS
SELECT CAST(from_date AS TEXT), policy FROM source_policies WHERE project_id = :project ORDER BY from_date

-- DELETE_FROM
DELETE FROM source_policies WHERE project_id = :project AND from_date >= :from_date

-- ADD
INSERT INTO source_policies (project_id, from_date, policy) VALUES (:project, :from_date, :policy)
