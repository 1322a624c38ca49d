-- The conversations of sessions that their clients do not name, by which the gateway knows such a session again after a
-- restart, and on another server.

CREATE TABLE session_histories (
    pool_id    uuid NOT NULL,
    session_id text NOT NULL,
    -- Hashes of the owner of the conversation and of all its turns: up to the latest one, and up to the latest answer.
    latest     text NOT NULL,
    answered   text NOT NULL,
    PRIMARY KEY (pool_id, session_id),
    FOREIGN KEY (pool_id, session_id) REFERENCES sessions ON DELETE CASCADE
);
CREATE INDEX session_histories_by_latest ON session_histories (pool_id, latest);
CREATE INDEX session_histories_by_answered ON session_histories (pool_id, answered);
CALL isolate('session_histories');
DO $$
DECLARE
    own constant text :=
        'EXISTS (SELECT FROM sessions s WHERE s.id = session_id AND s.project = current_project())';
BEGIN
    CALL open_to_projects('session_histories', 'SELECT, INSERT, UPDATE', own, own, own);
END
$$;
