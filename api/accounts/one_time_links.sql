-- CREATE
CREATE TABLE IF NOT EXISTS one_time_links (
    sha256 VARCHAR(64) PRIMARY KEY NOT NULL,
    purpose VARCHAR(20) NOT NULL,
    user_id VARCHAR(12) REFERENCES users (id) ON DELETE CASCADE,
    epoch INTEGER,
    expires_s BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS ix_one_time_links_user_id ON one_time_links (user_id)

-- ADD
INSERT INTO one_time_links (sha256, purpose, user_id, epoch, expires_s)
VALUES (:sha256, :purpose, :user, :epoch, :expires_s)

-- VALID
SELECT purpose, users.id, name, role, created_s, last_seen_s, password_hash IS NOT NULL
FROM one_time_links LEFT JOIN users ON users.id = user_id
WHERE sha256 = :sha256 AND expires_s > :now_s
AND CASE WHEN purpose = 'first_owner' THEN NOT EXISTS (SELECT 1 FROM users) ELSE one_time_links.epoch = users.epoch END

-- DELETE
DELETE FROM one_time_links WHERE sha256 = :sha256

-- DELETE_EARLIER
DELETE FROM one_time_links WHERE coalesce(user_id, '') = coalesce(:user, '') OR expires_s <= :now_s
