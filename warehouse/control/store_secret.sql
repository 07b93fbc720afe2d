-- CREATE
-- One row.
CREATE TABLE IF NOT EXISTS store_secrets (id INTEGER PRIMARY KEY NOT NULL, secret BYTEA NOT NULL)

-- SECRET
SELECT secret FROM store_secrets

-- ADD
INSERT INTO store_secrets (id, secret) VALUES (1, :secret) ON CONFLICT DO NOTHING
