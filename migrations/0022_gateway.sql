-- The sender of a session's messages: its client, by hooks or the API, or the gateway that its requests pass through.
-- It is the one that first opened the session, so that a transcript which comes on both ways is stored once.

ALTER TABLE sessions ADD COLUMN kept_by text NOT NULL DEFAULT 'client';
