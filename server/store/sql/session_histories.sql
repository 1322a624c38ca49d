-- name: lock
-- Lock a conversation before its session is looked up or begun: another server may be asked for it in the same moment.
SELECT pg_advisory_xact_lock(hashtext('conversation'), hashtext(current_pool()::text || %(mark)s))

-- name: with_one_of
-- The session that has the first of some marks. They are passed as one text, since the driver is slow with lists.
SELECT s.external_id
FROM string_to_table(%(marks)s, ' ') WITH ORDINALITY AS asked (mark, place)
JOIN session_histories h ON h.latest = asked.mark OR h.answered = asked.mark
JOIN sessions s ON s.id = h.session_id
ORDER BY asked.place, s.created_at DESC LIMIT 1

-- name: put
-- Store the marks of a session, unless it was deleted.
INSERT INTO session_histories (pool_id, session_id, latest, answered)
SELECT current_pool(), id, %(latest)s, %(answered)s FROM sessions WHERE id = %(session)s
ON CONFLICT (pool_id, session_id) DO UPDATE SET latest = excluded.latest, answered = excluded.answered

-- name: delete
-- The marks of some sessions: the hash of a short conversation would confirm a guess of its words.
DELETE FROM session_histories WHERE session_id = ANY (%(sessions)s)
