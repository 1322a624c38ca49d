-- Calls of a session that passed through the gateway. Their tokens are those of the provider's answers, and their raw
-- history is the request as its client sent it; other calls are as their client reported them.

ALTER TABLE session_usage ADD COLUMN gateway_calls bigint NOT NULL DEFAULT 0;
