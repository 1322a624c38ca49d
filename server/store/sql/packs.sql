-- name: current
-- A session's current pack: the last one that was frozen, unless it was forgotten.
SELECT p.version, p.text, p.sha256, p.tokens, p.memory_ids, p.pins_left, p.reason, p.created_at
FROM sessions s JOIN packs p ON p.session_id = s.id AND p.version = s.pack_version
WHERE s.id = %(session)s

-- name: lock_to_freeze
-- Lock before packs of this pool are frozen: a transaction that forgets waits, and then deletes these packs, too. One
-- lock for all, since row locks would write to the page of each row of each pack.
SELECT pg_advisory_xact_lock_shared(hashtext('packs'), hashtext(current_pool()::text))

-- name: lock_to_forget
-- Lock before packs of this pool are searched for forgotten rows: no pack is frozen until the transaction commits.
SELECT pg_advisory_xact_lock(hashtext('packs'), hashtext(current_pool()::text))

-- name: insert
-- Freeze the next version, with the reasons for its rows and for those that it leaves out; it replaces former versions,
-- of which the log is kept, and of the latest `kept` the ids of their rows. The caller holds the session's lock. Ids are
-- passed as one text, since the driver is slow with lists.
WITH counted AS (
    UPDATE sessions SET pack_version = pack_version + 1 WHERE id = %(session)s RETURNING pack_version AS version
), former AS (
    DELETE FROM packs WHERE session_id = %(session)s
    RETURNING version, sha256, tokens, reason, created_at, memory_ids
), logged AS (
    INSERT INTO former_packs (pool_id, session_id, version, sha256, tokens, reason, created_at, memory_ids)
    SELECT current_pool(), %(session)s, version, sha256, tokens, reason, created_at, memory_ids FROM former
), let_go AS (
    UPDATE former_packs SET memory_ids = NULL
    WHERE session_id = %(session)s AND memory_ids IS NOT NULL
      AND version < (SELECT version FROM counted) - %(kept)s
)
INSERT INTO packs (pool_id, session_id, version, text, sha256, tokens, memory_ids, pins_left, reason, created_at,
                   reasons, left_out_ids, left_out)
SELECT current_pool(), %(session)s, version, %(text)s, %(sha256)s, %(tokens)s, string_to_array(%(memory_ids)s, ' '),
       %(pins_left)s, %(reason)s, %(created_at)s, %(reasons)s, string_to_array(%(left_out_ids)s, ' '), %(left_out)s
FROM counted
RETURNING version

-- name: reasons
-- The reasons for the rows of one version.
SELECT reasons, left_out_ids, left_out FROM packs WHERE session_id = %(session)s AND version = %(version)s

-- name: delete_showing
-- Delete every version that shows one of these rows; its entry in the log stays.
WITH gone AS (
    DELETE FROM packs WHERE memory_ids && %(ids)s
    RETURNING session_id, version, tokens, reason, created_at
)
INSERT INTO former_packs (pool_id, session_id, version, tokens, reason, created_at)
SELECT current_pool(), session_id, version, tokens, reason, created_at FROM gone

-- name: delete_versions
-- Delete some versions; their entries in the log stay.
WITH gone AS (
    DELETE FROM packs
    WHERE (session_id, version) IN (SELECT * FROM unnest(%(sessions)s::text[], %(versions)s::bigint[]))
    RETURNING session_id, version, tokens, reason, created_at
)
INSERT INTO former_packs (pool_id, session_id, version, tokens, reason, created_at)
SELECT current_pool(), session_id, version, tokens, reason, created_at FROM gone

-- name: forget_hashes
-- Delete the hashes of former versions, which may have shown forgotten text: a hash would confirm a guess of it.
UPDATE former_packs SET sha256 = NULL WHERE sha256 IS NOT NULL

-- name: forget_former
-- Forget which rows a former version showed, if it showed one of these.
UPDATE former_packs SET memory_ids = NULL WHERE memory_ids && %(ids)s

-- name: rows_of_versions
-- The ids of the rows of some versions of a session's pack, as far as they are known.
SELECT version, memory_ids FROM packs WHERE session_id = %(session)s AND version = ANY (%(versions)s)
UNION ALL
SELECT version, memory_ids FROM former_packs
WHERE session_id = %(session)s AND version = ANY (%(versions)s) AND memory_ids IS NOT NULL

-- name: versions
-- The versions of a session's pack, newest first; only the present one still has its text.
SELECT version, sha256, tokens, reason, created_at, present
FROM (SELECT version, sha256, tokens, reason, created_at, true AS present FROM packs WHERE session_id = %(session)s
      UNION ALL
      SELECT version, sha256, tokens, reason, created_at, false FROM former_packs WHERE session_id = %(session)s) AS all_packs
ORDER BY version DESC LIMIT %(limit)s

-- name: forget_left_out
-- Remove these rows from the lists of rows that versions leave out; the others keep their order.
UPDATE packs
SET (left_out_ids, left_out) = (
    SELECT coalesce(array_agg(o.id ORDER BY o.place), '{}'), coalesce(jsonb_agg(o.reason ORDER BY o.place), '[]')
    FROM ROWS FROM (unnest(left_out_ids), jsonb_array_elements(left_out)) WITH ORDINALITY AS o (id, reason, place)
    WHERE o.id <> ALL (%(ids)s))
WHERE left_out_ids && %(ids)s
