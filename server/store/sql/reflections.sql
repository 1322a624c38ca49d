-- name: insert
-- Record what one reflection did.
INSERT INTO reflections (pool_id, id, scope, session_id, reflector, input_ids, output_ids, tokens_before,
                         tokens_after, input_tokens, output_tokens, created_at)
VALUES (current_pool(), %(id)s, 'session', %(session)s, %(reflector)s, %(input_ids)s, %(output_ids)s,
        %(tokens_before)s, %(tokens_after)s, %(input_tokens)s, %(output_tokens)s, %(now)s)
