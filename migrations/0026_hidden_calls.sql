-- Calls of `recall_memory` that the gateway answered and clients have not seen. They are put into later requests again, in
-- the same bytes, also by another server and after a restart.

CREATE TABLE hidden_calls (
    pool_id    uuid NOT NULL,
    -- A hash of the sender and of the conversation up to the answer before which the calls come.
    place      text NOT NULL,
    session_id text NOT NULL,
    -- Calls and results as they are sent; `json`, since `jsonb` would change their bytes.
    items      json NOT NULL,
    -- The memories and passages in the results.
    shown_ids  text[] NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (pool_id, place),
    FOREIGN KEY (pool_id, session_id) REFERENCES sessions ON DELETE CASCADE
);
CREATE INDEX hidden_calls_by_session ON hidden_calls (pool_id, session_id);
CALL isolate('hidden_calls');
DO $$
DECLARE
    own constant text :=
        'EXISTS (SELECT FROM sessions s WHERE s.id = session_id AND s.project = current_project())';
BEGIN
    CALL open_to_projects('hidden_calls', 'SELECT, INSERT, UPDATE', own, own, own);
END
$$;
