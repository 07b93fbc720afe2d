-- CREATE
CREATE TABLE IF NOT EXISTS sessions (
    sha256 VARCHAR(64) PRIMARY KEY NOT NULL,
    user_id VARCHAR(12) NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    epoch INTEGER NOT NULL,
    renewed_s BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS ix_sessions_user_id ON sessions (user_id)

-- ADD
INSERT INTO sessions (sha256, user_id, epoch, renewed_s) VALUES (:sha256, :user, :epoch, :now_s)

-- USER
SELECT renewed_s, users.id, name, role, created_s, last_seen_s, password_hash IS NOT NULL
FROM sessions JOIN users ON users.id = user_id
WHERE sha256 = :sha256 AND sessions.epoch = users.epoch

-- RENEW
UPDATE sessions SET renewed_s = :now_s WHERE sha256 = :sha256

-- DELETE
DELETE FROM sessions WHERE sha256 = :sha256

-- DELETE_OF_USER
DELETE FROM sessions WHERE user_id = :user

-- DELETE_EXPIRED
DELETE FROM sessions WHERE renewed_s <= :until_s
