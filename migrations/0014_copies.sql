-- A fork of a conversation repeats messages of another session; these are found by the ids that their client gave them.

CREATE INDEX messages_by_external_id ON messages (pool_id, external_id);
