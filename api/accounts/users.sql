-- CREATE
CREATE TABLE IF NOT EXISTS users (
    id VARCHAR(12) PRIMARY KEY NOT NULL,
    name VARCHAR(100) NOT NULL,
    folded_name VARCHAR(300) NOT NULL UNIQUE,
    role VARCHAR(10) NOT NULL,
    password_hash VARCHAR(200),
    epoch INTEGER NOT NULL,
    created_s BIGINT NOT NULL,
    last_seen_s BIGINT
)

-- ADD
INSERT INTO users (id, name, folded_name, role, password_hash, epoch, created_s)
VALUES (:id, :name, :folded_name, :role, :password_hash, 0, :created_s)
ON CONFLICT DO NOTHING

-- BY_NAME
SELECT id, name, role, created_s, last_seen_s, password_hash IS NOT NULL, password_hash FROM users
WHERE folded_name = :folded_name

-- ALL
SELECT id, name, role, created_s, last_seen_s, password_hash IS NOT NULL FROM users ORDER BY folded_name

-- COUNT
SELECT count(*) FROM users

-- LOCK_EPOCH
SELECT epoch FROM users WHERE id = :id FOR UPDATE

-- LOCK_OWNERS
SELECT id FROM users WHERE role = 'owner' ORDER BY id FOR UPDATE

-- SET_HASH
UPDATE users SET password_hash = :password_hash, epoch = epoch + 1 WHERE id = :id RETURNING name

-- END_EPOCH
UPDATE users SET epoch = epoch + 1 WHERE id = :id RETURNING name

-- SET_ROLE
UPDATE users SET role = :role WHERE id = :id RETURNING name

-- SET_LAST_SEEN
UPDATE users SET last_seen_s = :now_s WHERE id = :id RETURNING name

-- REPLACE_HASH
UPDATE users SET password_hash = :new WHERE id = :id AND password_hash = :old

-- DELETE
DELETE FROM users WHERE id = :id RETURNING name
