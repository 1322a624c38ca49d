-- Sessions are listed by when they were held, not by when they were sent: a transcript of last year is of last year.

-- `begun_at` is the time of the earliest message or, if that is earlier, when the session was opened. It only ever moves
-- back, so whoever reads the list page by page meanwhile misses nothing. A client's clock that runs ahead does not put
-- `last_sent_at` behind the time at which the message came.
ALTER TABLE sessions ADD COLUMN begun_at timestamptz, ADD COLUMN last_sent_at timestamptz;
UPDATE sessions s SET begun_at = least(s.created_at, told.first), last_sent_at = told.last
FROM (
    SELECT pool_id, session_id, min(sent_at) AS first, max(least(sent_at, received_at)) AS last
    FROM messages GROUP BY pool_id, session_id
) AS told
WHERE told.pool_id = s.pool_id AND told.session_id = s.id;
UPDATE sessions SET begun_at = created_at WHERE begun_at IS NULL;
ALTER TABLE sessions
    ALTER COLUMN begun_at SET NOT NULL,
    ADD CHECK (begun_at <= created_at),
    ADD CHECK ((last_sent_at IS NULL) = (last_seq = 0));

DROP INDEX sessions_by_age;
CREATE INDEX sessions_by_begin ON sessions (pool_id, begun_at DESC, id DESC);
