-- Forgotten texts stay forgotten: keyed hashes of their words tell when one comes back.

-- The key of a pool's hashes. It never leaves the database; without it a hash confirms no guess. `longest` is the most
-- terms of any words that were forgotten.
CREATE TABLE forget_keys (
    pool_id uuid PRIMARY KEY REFERENCES pools ON DELETE CASCADE,
    key     bytea NOT NULL CHECK (length(key) = 32),
    longest integer NOT NULL CHECK (longest >= 0)
);
CALL isolate('forget_keys');

-- A text with this hash is not kept again if it was said up to `until` (NULL: whenever). A message with it is blanked,
-- or, unless it `blanks`, only left out of passages.
CREATE TABLE tombstones (
    pool_id    uuid NOT NULL REFERENCES pools ON DELETE CASCADE,
    digest     bytea NOT NULL CHECK (length(digest) = 32),
    receipt_id text NOT NULL,
    until      timestamptz,
    blanks     boolean NOT NULL,
    PRIMARY KEY (pool_id, digest, receipt_id)
);
CREATE INDEX tombstones_by_receipt ON tombstones (pool_id, receipt_id);
CALL isolate('tombstones');
