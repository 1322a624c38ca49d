-- Who sends the messages of a session: its client, by hooks or the API, or the gateway that its requests pass through.
-- The first who opens a session decides, so that a transcript which comes on both ways is stored once.

ALTER TABLE sessions ADD COLUMN kept_by text NOT NULL DEFAULT 'client';
