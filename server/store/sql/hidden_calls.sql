-- name: at_places
-- The items at some places, in their order and in the bytes in which they were stored. Places are passed as one text, since
-- the driver is slow with lists.
SELECT place, ARRAY(SELECT item::text FROM json_array_elements(items) WITH ORDINALITY AS each (item, number) ORDER BY number)
FROM hidden_calls WHERE place = ANY (string_to_array(%(places)s, ' '))

-- name: latest_forgetting
-- The transaction that was the last to forget something in the pool: each one writes this row anew.
SELECT xmin::text FROM forget_keys

-- name: put
-- Store calls if nothing was forgotten since their request came, and every text that their results show is still there and
-- not in quarantine. A text that lost only some of its words has its id as before.
WITH shown AS (SELECT string_to_array(%(shown)s, ' ') AS ids)
INSERT INTO hidden_calls (pool_id, place, session_id, items, shown_ids, created_at)
SELECT current_pool(), %(place)s, %(session)s, %(items)s::json, shown.ids, %(now)s
FROM shown
WHERE %(forgetting)s = coalesce((SELECT xmin::text FROM forget_keys), '')
  AND cardinality(shown.ids) = (SELECT count(*) FROM memories m
                                WHERE m.id = ANY (shown.ids) AND m.outdated_at IS DISTINCT FROM '-infinity')
                             + (SELECT count(*) FROM passages p WHERE p.id = ANY (shown.ids) AND p.quarantine_id IS NULL)
ON CONFLICT (pool_id, place) DO UPDATE
SET session_id = excluded.session_id, items = excluded.items, shown_ids = excluded.shown_ids,
    created_at = excluded.created_at

-- name: delete_all
-- All calls of the pool: their results, and the thoughts before them, may say a forgotten thing in any words.
DELETE FROM hidden_calls

-- name: delete_showing
-- The calls whose results show one of some memories or passages.
DELETE FROM hidden_calls WHERE shown_ids && %(ids)s

-- name: delete_at
-- The calls at some places.
DELETE FROM hidden_calls WHERE place = ANY (%(places)s)

-- name: delete_before
-- The calls that were made before a time.
DELETE FROM hidden_calls WHERE created_at < %(before)s
