-- Sessions whose clients build their own requests: what their calls cost, and which packs there have been.


-- Packs -------------------------------------------------------------------------------------------------------------

-- Versions that another took the place of, or in which something was forgotten: a prefix that was lost can be told from
-- one that was changed. The texts are gone; so is the hash, once anything is forgotten that may have been in one.
CREATE TABLE former_packs (
    pool_id    uuid NOT NULL,
    session_id text NOT NULL,
    version    integer NOT NULL CHECK (version > 0),
    sha256     text CHECK (sha256 ~ '^[0-9a-f]{64}$'),
    tokens     integer NOT NULL,
    reason     text NOT NULL CHECK (reason IN ('initial', 'reflection', 'evicted', 'forgotten')),
    created_at timestamptz NOT NULL,
    PRIMARY KEY (pool_id, session_id, version),
    FOREIGN KEY (pool_id, session_id) REFERENCES sessions ON DELETE CASCADE
);
CREATE INDEX former_packs_with_hash ON former_packs (pool_id) WHERE sha256 IS NOT NULL;
CALL isolate('former_packs');


-- Usage -------------------------------------------------------------------------------------------------------------

-- What a session's client said its calls of a model used, in the provider's tokens: sums, and the last call. The sums
-- of `raw_tokens` (by our estimate) and `raw_cost_usd` are what the same calls would have come to with all messages.
CREATE TABLE session_usage (
    pool_id                 uuid NOT NULL,
    session_id              text NOT NULL,
    calls                   bigint NOT NULL CHECK (calls > 0),
    input_tokens            bigint NOT NULL CHECK (input_tokens >= 0),
    cache_write_tokens      bigint NOT NULL CHECK (cache_write_tokens >= 0),
    cache_read_tokens       bigint NOT NULL CHECK (cache_read_tokens >= 0),
    output_tokens           bigint NOT NULL CHECK (output_tokens >= 0),
    raw_tokens              bigint NOT NULL CHECK (raw_tokens >= 0),
    -- Calls that read nothing from the cache although the pack before them was that of the call before.
    prefix_lost             bigint NOT NULL CHECK (prefix_lost BETWEEN 0 AND calls),
    -- Money is counted for calls of models whose price is known.
    priced_calls            bigint NOT NULL CHECK (priced_calls BETWEEN 0 AND calls),
    cost_usd                double precision NOT NULL CHECK (cost_usd >= 0),
    raw_cost_usd            double precision NOT NULL CHECK (raw_cost_usd >= 0),
    last_at                 timestamptz NOT NULL,
    last_model              text,
    last_input_tokens       bigint NOT NULL,
    last_cache_write_tokens bigint NOT NULL,
    last_cache_read_tokens  bigint NOT NULL,
    last_output_tokens      bigint NOT NULL,
    last_raw_tokens         bigint NOT NULL,
    last_pack_version       integer NOT NULL,
    PRIMARY KEY (pool_id, session_id),
    FOREIGN KEY (pool_id, session_id) REFERENCES sessions ON DELETE CASCADE
);
CALL isolate('session_usage');

-- A call that is reported twice under one id is one call.
ALTER TABLE session_events DROP CONSTRAINT session_events_kind_check;
ALTER TABLE session_events ADD CONSTRAINT session_events_kind_check
    CHECK (kind IN ('compaction_pending', 'session_end', 'turn_end', 'evicted', 'usage'));
