-- CREATE
CREATE TABLE IF NOT EXISTS audit (
    id VARCHAR(12) PRIMARY KEY NOT NULL,
    at_us BIGINT NOT NULL,
    who VARCHAR(100),
    action VARCHAR(40) NOT NULL,
    project_id VARCHAR(63) REFERENCES projects (id) ON DELETE CASCADE,
    detail VARCHAR(300) NOT NULL
);
CREATE INDEX IF NOT EXISTS ix_audit_at_us ON audit (at_us);
CREATE INDEX IF NOT EXISTS ix_audit_project_id ON audit (project_id)

-- ADD
INSERT INTO audit (id, at_us, who, action, project_id, detail)
VALUES (:id, :at_us, :who, :action, :project, :detail)

-- DELETE_SURPLUS
-- Delete the entries that are too old, and those of the same kind beyond the newest `most`.
DELETE FROM audit WHERE at_us <= :old_us OR (action IN ([:failure#] * 2)) = :is_failure AND at_us <= (
    SELECT at_us FROM audit WHERE (action IN ([:failure#] * 2)) = :is_failure
    ORDER BY at_us DESC LIMIT 1 OFFSET :most
)

-- ENTRIES
SELECT at_us, who, action, project_id, detail FROM audit ORDER BY at_us DESC, id DESC LIMIT :limit OFFSET :offset

-- COUNT
SELECT count(*) FROM audit
