-- Tables of agent jobs in the control database. Times are microseconds since 1970.

-- CREATE
CREATE TABLE IF NOT EXISTS jobs (
    id VARCHAR(32) PRIMARY KEY NOT NULL,
    project_id VARCHAR(63) NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    status VARCHAR(9) NOT NULL,
    repository TEXT NOT NULL,
    ref TEXT NOT NULL,
    preset TEXT NOT NULL,
    command JSON NOT NULL,
    model TEXT NOT NULL,
    pull_request TEXT,
    session TEXT,
    reason TEXT,
    created_us BIGINT NOT NULL,
    changed_us BIGINT NOT NULL,
    archived_us BIGINT
);
CREATE INDEX IF NOT EXISTS ix_jobs_status ON jobs (status);
CREATE INDEX IF NOT EXISTS jobs_of_project ON jobs (project_id, created_us);
-- Turns, one row per prompt; workers claim them in the order of their ids. `operation` is the request that created the
-- turn, create or message; `state` is queued, running, done, failed or cancelled; `steps` has the form of
-- `agent.jobs.steps.Steps`.
CREATE TABLE IF NOT EXISTS turns (
    id BIGSERIAL PRIMARY KEY,
    project_id VARCHAR(63) NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    job_id VARCHAR(32) NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    operation VARCHAR(7) NOT NULL,
    prompt TEXT NOT NULL,
    state VARCHAR(9) NOT NULL,
    created_us BIGINT NOT NULL,
    started_us BIGINT,
    ended_us BIGINT,
    owner VARCHAR(64),
    attempt INTEGER NOT NULL,
    lease_until_us BIGINT,
    steps JSON NOT NULL
);
CREATE INDEX IF NOT EXISTS ix_turns_job_id ON turns (job_id);
CREATE INDEX IF NOT EXISTS ix_turns_state ON turns (state);
CREATE INDEX IF NOT EXISTS turns_of_project ON turns (project_id, operation, created_us);
CREATE TABLE IF NOT EXISTS job_log (
    id BIGSERIAL PRIMARY KEY,
    job_id VARCHAR(32) NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    turn_id BIGINT NOT NULL,
    at_us BIGINT NOT NULL,
    kind VARCHAR(8) NOT NULL,
    text TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS ix_job_log_job_id ON job_log (job_id);
-- Responses to requests with an Idempotency-Key, for repeated requests. `fingerprint` is a hash of the prompt.
CREATE TABLE IF NOT EXISTS job_answers (
    project_id VARCHAR(63) NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    operation VARCHAR(48) NOT NULL,
    key VARCHAR(255) NOT NULL,
    fingerprint VARCHAR(32) NOT NULL,
    answer JSON NOT NULL,
    seen_us BIGINT NOT NULL,
    PRIMARY KEY (project_id, operation, key)
);
CREATE INDEX IF NOT EXISTS ix_job_answers_seen_us ON job_answers (seen_us);
-- Webhook messages that are not delivered yet.
CREATE TABLE IF NOT EXISTS webhook_deliveries (
    id VARCHAR(32) PRIMARY KEY NOT NULL,
    project_id VARCHAR(63) NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    job_id VARCHAR(32) NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    body TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    due_us BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS ix_webhook_deliveries_due_us ON webhook_deliveries (due_us);
CREATE INDEX IF NOT EXISTS ix_webhook_deliveries_job_id ON webhook_deliveries (job_id)

-- ADD_JOB
INSERT INTO jobs (
    id, project_id, status, repository, ref, preset, command, model, pull_request, session, reason, created_us,
    changed_us, archived_us
) VALUES (
    :id, :project, :status, :repository, :ref, :preset, :command, :model, :pull_request, :session, :reason, :created_us,
    :now_us, :archived_us
)

-- JOB
SELECT
    id, project_id, status, repository, ref, preset, CAST(command AS TEXT), model, pull_request, created_us,
    archived_us, reason, session
FROM jobs WHERE id = :id

-- LOCK_JOB
SELECT
    id, project_id, status, repository, ref, preset, CAST(command AS TEXT), model, pull_request, created_us,
    archived_us, reason, session
FROM jobs WHERE id = :id FOR UPDATE

-- JOBS
SELECT
    id, project_id, status, repository, ref, preset, CAST(command AS TEXT), model, pull_request, created_us,
    archived_us, reason, session
FROM jobs WHERE project_id = :project AND status = coalesce(:status, status)
AND (created_us < :after_us OR created_us = :after_us AND id > :after_id)
ORDER BY created_us DESC, id LIMIT :limit OFFSET :offset

-- SET_JOB
UPDATE jobs SET
    status = :status, pull_request = :pull_request, session = :session, reason = :reason, changed_us = :now_us,
    archived_us = :archived_us
WHERE id = :id

-- SET_SESSION
UPDATE jobs SET session = :value WHERE id = :id

-- SET_PULL_REQUEST
UPDATE jobs SET pull_request = :value WHERE id = :id

-- ARCHIVE_IDLE
-- Without the locked ones: see `agent.jobs.store.remove`.
UPDATE jobs SET status = 'archived', archived_us = :now_us WHERE id IN (
    SELECT id FROM jobs WHERE status IN ('completed', 'failed') AND changed_us <= :until_us FOR UPDATE SKIP LOCKED
)

-- HAS_ARCHIVED
SELECT 1 FROM jobs WHERE status = 'archived' AND archived_us < :before_us LIMIT 1

-- OLDEST_ARCHIVED
SELECT id, project_id FROM jobs WHERE status = 'archived' AND archived_us < :before_us
ORDER BY archived_us LIMIT 1 FOR UPDATE SKIP LOCKED

-- HAS_JOB
SELECT 1 FROM jobs LIMIT 1

-- UNARCHIVED_JOBS
SELECT id FROM jobs WHERE status <> 'archived'

-- COUNT_JOBS
SELECT status, count(*) FROM jobs GROUP BY status

-- DELETE_JOB
DELETE FROM jobs WHERE id = :id

-- DELETE_JOBS
DELETE FROM jobs WHERE project_id IN (
    SELECT id FROM projects WHERE id = :project AND internal_id = coalesce(:internal_id, internal_id)
)
RETURNING id

-- ADD_TURN
INSERT INTO turns (project_id, job_id, operation, prompt, state, created_us, attempt, steps)
VALUES (:project, :job, :operation, :prompt, 'queued', :now_us, 0, '{}')

-- TURNS
SELECT id, prompt, state, created_us, started_us, ended_us FROM turns
WHERE job_id = :job ORDER BY id LIMIT :limit OFFSET :offset

-- EARLIER_TURNS
SELECT prompt, state, CAST(steps AS TEXT) FROM turns
WHERE job_id = :job AND id < :id AND started_us IS NOT NULL ORDER BY id

-- LATEST_TURN
SELECT max(id) FROM turns WHERE job_id = :job

-- WAITING_TURN
-- Without a lock: idle workers poll several times per second.
SELECT 1 FROM turns JOIN jobs ON jobs.id = turns.job_id
WHERE (state = 'queued' OR state = 'running' AND lease_until_us <= :now_us) AND NOT EXISTS (
    SELECT 1 FROM turns AS earlier
    WHERE earlier.job_id = turns.job_id AND earlier.id < turns.id AND earlier.state IN ('queued', 'running')
)
ORDER BY turns.id LIMIT 1

-- LOCK_WAITING_TURN
SELECT
    turns.id, turns.job_id, prompt, state, attempt, lease_until_us, started_us, CAST(steps AS TEXT)
FROM turns JOIN jobs ON jobs.id = turns.job_id
WHERE (state = 'queued' OR state = 'running' AND lease_until_us <= :now_us) AND NOT EXISTS (
    SELECT 1 FROM turns AS earlier
    WHERE earlier.job_id = turns.job_id AND earlier.id < turns.id AND earlier.state IN ('queued', 'running')
)
ORDER BY turns.id LIMIT 1 FOR UPDATE OF jobs SKIP LOCKED

-- TAKE_TURN
UPDATE turns SET
    state = 'running', owner = :owner, attempt = :attempt, lease_until_us = :until_us, started_us = :started_us
WHERE id = :id AND state = :state AND attempt = :attempt_before
AND coalesce(lease_until_us, 0) = coalesce(:until_before_us, 0)

-- TOUCH_TURN
-- This, and the next three, change nothing if the worker has lost the turn.
UPDATE turns SET owner = :owner WHERE id = :id AND owner = :owner AND attempt = :attempt AND state = 'running'

-- RENEW_TURN
UPDATE turns SET lease_until_us = :until_us
WHERE id = :id AND owner = :owner AND attempt = :attempt AND state = 'running'

-- SET_STEPS
UPDATE turns SET steps = :steps WHERE id = :id AND owner = :owner AND attempt = :attempt AND state = 'running'

-- RELEASE_TURN
UPDATE turns SET state = 'queued', attempt = attempt - 1, owner = NULL
WHERE id = :id AND owner = :owner AND attempt = :attempt AND state = 'running'

-- STEPS
SELECT CAST(steps AS TEXT) FROM turns WHERE id = :id

-- END_TURN
UPDATE turns SET state = :state, ended_us = :now_us WHERE id = :id

-- CANCEL_TURNS
UPDATE turns SET state = 'cancelled', ended_us = :now_us WHERE job_id = :job AND state IN ('queued', 'running')

-- COUNT_UNENDED
SELECT count(*) FROM turns WHERE job_id = :job AND state IN ('queued', 'running')

-- OLDEST_QUEUED
SELECT min(created_us) FROM turns WHERE state = 'queued'

-- NEWEST_USES
SELECT created_us FROM turns WHERE project_id = :project AND operation = :operation AND created_us > :since_us
ORDER BY created_us DESC LIMIT :most

-- SUMMARY
SELECT first.job_id, first.prompt, turns, is_running, worked_us FROM (
    SELECT
        min(id) AS id,
        count(*) AS turns,
        max(CASE WHEN state = 'running' THEN 1 ELSE 0 END) AS is_running,
        sum(coalesce(ended_us, :now_us) - started_us) AS worked_us
    FROM turns WHERE job_id = :job
) AS every JOIN turns AS first ON first.id = every.id

-- ADD_ENTRY
INSERT INTO job_log (job_id, turn_id, at_us, kind, text) VALUES (:job, :turn, :now_us, :kind, :text)

-- REPLACE_OUTPUT
UPDATE job_log SET text = :text, at_us = :now_us WHERE turn_id = :turn AND kind = 'output'

-- ENTRIES_OF_JOB
SELECT
    at_us, (SELECT count(*) FROM turns WHERE turns.job_id = :job AND turns.id <= job_log.turn_id), kind, text
FROM job_log WHERE job_id = :job ORDER BY id LIMIT :limit OFFSET :offset

-- ENTRIES_OF_TURN
SELECT at_us, kind, text FROM job_log WHERE turn_id = :turn ORDER BY id LIMIT :limit

-- RESPONSE
SELECT fingerprint, CAST(answer AS TEXT), seen_us FROM job_answers
WHERE project_id = :project AND operation = :operation AND key = :key

-- ADD_RESPONSE
INSERT INTO job_answers (project_id, operation, key, fingerprint, answer, seen_us)
VALUES (:project, :operation, :key, :fingerprint, :answer, :now_us)

-- DELETE_RESPONSE
DELETE FROM job_answers WHERE project_id = :project AND operation = :operation AND key = :key

-- DELETE_EXPIRED_RESPONSES
DELETE FROM job_answers WHERE seen_us <= :until_us

-- DELETE_RESPONSES_OF_JOB sqlite
DELETE FROM job_answers WHERE project_id = :project AND json_extract(answer, '$.id') = :job

-- DELETE_RESPONSES_OF_JOB postgresql
DELETE FROM job_answers WHERE project_id = :project AND answer ->> 'id' = :job

-- ADD_MESSAGE
INSERT INTO webhook_deliveries (id, project_id, job_id, body, attempts, due_us)
VALUES (:id, :project, :job, :body, 0, :now_us)

-- LAST_MESSAGE
SELECT max(id) FROM webhook_deliveries WHERE job_id = :job

-- DUE_PROJECTS
SELECT project_id FROM webhook_deliveries AS message
WHERE due_us <= :now_us AND NOT EXISTS (
    SELECT 1 FROM webhook_deliveries AS earlier WHERE earlier.job_id = message.job_id AND earlier.id < message.id
)
GROUP BY project_id ORDER BY min(due_us)

-- LOCK_DUE_MESSAGE
SELECT id, project_id, body, attempts FROM webhook_deliveries AS message
WHERE due_us <= :now_us AND project_id = :project AND NOT EXISTS (
    SELECT 1 FROM webhook_deliveries AS earlier WHERE earlier.job_id = message.job_id AND earlier.id < message.id
)
ORDER BY due_us LIMIT 1 FOR UPDATE OF message SKIP LOCKED

-- DELAY_MESSAGE
UPDATE webhook_deliveries SET due_us = :due_us, attempts = :attempts WHERE id = :id

-- DELETE_MESSAGE
DELETE FROM webhook_deliveries WHERE id = :id
