-- CREATE
CREATE TABLE IF NOT EXISTS sign_in_attempts (
    id SERIAL PRIMARY KEY,
    account VARCHAR(32) NOT NULL,
    address VARCHAR(32) NOT NULL,
    is_success BOOLEAN NOT NULL,
    at_s BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS ix_sign_in_attempts_account ON sign_in_attempts (account);
CREATE INDEX IF NOT EXISTS ix_sign_in_attempts_address ON sign_in_attempts (address);
CREATE INDEX IF NOT EXISTS ix_sign_in_attempts_at_s ON sign_in_attempts (at_s)

-- LOCK postgresql
-- One attempt at a time is counted. The key is `sign` in ASCII.
SELECT pg_advisory_xact_lock(1936287598)

-- LOCK sqlite
SELECT 1

-- ADD
INSERT INTO sign_in_attempts (account, address, is_success, at_s)
VALUES (:account, :address, :is_success, :at_s)
RETURNING id

-- WITHDRAW
-- SQLite may give the id of a deleted row to another attempt.
DELETE FROM sign_in_attempts WHERE id = :id AND account = :account AND address = :address

-- DELETE_OF_KEY
DELETE FROM sign_in_attempts WHERE account = :account AND address = :address

-- DELETE_OLD
DELETE FROM sign_in_attempts WHERE at_s <= CASE WHEN is_success THEN :success_s ELSE :failure_s END

-- TURN
SELECT at_s FROM sign_in_attempts WHERE account = :account AND address = :address AND at_s > :since_s

-- USE_TURN
UPDATE sign_in_attempts SET address = :used
WHERE account = :account AND address = :address AND at_s > :since_s

-- LAST_TURN
SELECT coalesce(max(at_s), 0) FROM sign_in_attempts WHERE account = :account

-- FAILURES
SELECT count(*), max(at_s) FROM sign_in_attempts WHERE account = :account AND address = :address AND NOT is_success

-- OLDEST_OF_ACCOUNT
SELECT at_s FROM sign_in_attempts WHERE account = :account AND NOT is_success
ORDER BY at_s DESC LIMIT 1 OFFSET :skipped

-- OLDEST_OF_ADDRESS
SELECT at_s FROM sign_in_attempts WHERE address = :address AND NOT is_success
ORDER BY at_s DESC LIMIT 1 OFFSET :skipped

-- IS_EXEMPT
SELECT 1 FROM sign_in_attempts WHERE account = :account AND address = :address AND is_success LIMIT 1
