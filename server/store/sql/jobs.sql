-- name: request
-- Ask for a job now, up to a message; a dead job gets a new life.
INSERT INTO jobs (pool_id, kind, subject, run_after, up_to_seq, options, created_at)
VALUES (current_pool(), %(kind)s, %(subject)s, %(now)s, %(up_to_seq)s, %(options)s, %(now)s)
ON CONFLICT (pool_id, kind, subject) DO UPDATE
    SET state = CASE jobs.state WHEN 'dead' THEN 'ready' ELSE jobs.state END,
        attempts = CASE jobs.state WHEN 'running' THEN jobs.attempts ELSE 0 END,
        asked_again = jobs.state = 'running',
        run_after = least(jobs.run_after, excluded.run_after),
        up_to_seq = greatest(jobs.up_to_seq, excluded.up_to_seq),
        options = excluded.options

-- name: schedule_first
-- Have a job run at a time, unless there is one that is alive; a dead one is tried once more.
WITH revived AS (
    UPDATE jobs SET state = 'ready', run_after = %(run_after)s
    WHERE kind = %(kind)s AND subject = %(subject)s AND state = 'dead'
)
INSERT INTO jobs (pool_id, kind, subject, run_after, created_at)
VALUES (current_pool(), %(kind)s, %(subject)s, %(run_after)s, %(now)s)
ON CONFLICT (pool_id, kind, subject) DO NOTHING

-- name: schedule
-- Have a job run at a time. One that was asked for, that runs, or that failed keeps its own time (asking and claiming
-- both set `up_to_seq`); a dead one is tried once more, when its pause is over.
INSERT INTO jobs (pool_id, kind, subject, run_after, created_at)
VALUES (current_pool(), %(kind)s, %(subject)s, %(run_after)s, %(now)s)
ON CONFLICT (pool_id, kind, subject) DO UPDATE
    SET state = CASE jobs.state WHEN 'dead' THEN 'ready' ELSE jobs.state END,
        asked_again = jobs.asked_again OR (jobs.state = 'running' AND excluded.run_after <= %(now)s),
        run_after = CASE
            WHEN jobs.state = 'dead' THEN greatest(jobs.run_after, excluded.run_after)
            WHEN jobs.state = 'running' OR jobs.up_to_seq > 0 THEN jobs.run_after
            ELSE excluded.run_after
        END

-- name: schedule_unobserved
-- Have every session observed whose tail nobody has seen and that has no job: those with enough of it now, others when
-- they count as idle.
INSERT INTO jobs (pool_id, kind, subject, run_after, created_at)
SELECT current_pool(), 'observe', id,
       CASE WHEN unobserved_tokens >= %(tokens)s THEN %(now)s::timestamptz ELSE %(idle)s::timestamptz END, %(now)s
FROM sessions WHERE unobserved_tokens > 0 ORDER BY id
ON CONFLICT (pool_id, kind, subject) DO NOTHING

-- name: bury
-- A job whose worker died once too often is dead: what kills its worker would kill the next one.
UPDATE jobs
SET state = 'dead', lease_token = NULL, lease_until = NULL, error_kind = coalesce(error_kind, 'EskerError'),
    last_error = coalesce(last_error, 'its worker died, ' || attempts || ' times')
WHERE state = 'running' AND lease_until <= %(now)s AND attempts >= %(most)s

-- name: claim
-- Take one job that is due, or whose holder went silent. What the session holds by now is what the job is for.
WITH due AS (
    SELECT kind, subject FROM jobs
    WHERE state <> 'dead' AND run_after <= %(now)s AND (lease_until IS NULL OR lease_until <= %(now)s)
      AND kind = ANY (%(kinds)s)
    ORDER BY run_after
    LIMIT 1
    FOR UPDATE SKIP LOCKED
)
UPDATE jobs j
SET state = 'running', lease_token = gen_random_uuid(), lease_until = %(until)s, attempts = attempts + 1,
    asked_again = false, up_to_seq = greatest(j.up_to_seq, (SELECT last_seq FROM sessions s WHERE s.id = j.subject))
FROM due
WHERE j.kind = due.kind AND j.subject = due.subject
RETURNING j.pool_id::text, j.kind, j.subject, j.lease_token::text AS token, j.attempts, j.lease_until AS until,
          j.options

-- name: hold
-- Prove the lease and lengthen it; nothing comes back when it was lost.
UPDATE jobs SET lease_until = greatest(lease_until, %(until)s)
WHERE kind = %(kind)s AND subject = %(subject)s AND lease_token = %(token)s
RETURNING up_to_seq

-- name: attempts
-- How often the job was begun since it last got on.
SELECT attempts FROM jobs WHERE kind = %(kind)s AND subject = %(subject)s AND lease_token = %(token)s

-- name: progress
-- A part of the job is done, so what failed before it counts no more.
UPDATE jobs SET attempts = 1, last_error = NULL, error_kind = NULL
WHERE kind = %(kind)s AND subject = %(subject)s AND lease_token = %(token)s

-- name: done
-- The job is over, unless somebody asked for it while it ran.
DELETE FROM jobs
WHERE kind = %(kind)s AND subject = %(subject)s AND lease_token = %(token)s AND NOT asked_again

-- name: rest
-- The job is over for now; more came meanwhile, and waits until its own time.
UPDATE jobs
SET options = CASE WHEN asked_again THEN options ELSE '{}' END,
    state = 'ready', lease_token = NULL, lease_until = NULL, attempts = 0, up_to_seq = 0, asked_again = false,
    last_error = NULL, error_kind = NULL,
    run_after = CASE WHEN asked_again THEN coalesce(%(if_asked)s::timestamptz, %(run_after)s::timestamptz)
                     ELSE %(run_after)s END
WHERE kind = %(kind)s AND subject = %(subject)s AND lease_token = %(token)s

-- name: fail
-- The job failed: again later, or dead, with its error.
UPDATE jobs
SET state = CASE WHEN %(dead)s THEN 'dead' ELSE 'ready' END, lease_token = NULL, lease_until = NULL,
    last_error = %(error)s, error_kind = %(error_kind)s, run_after = %(run_after)s
WHERE kind = %(kind)s AND subject = %(subject)s AND lease_token = %(token)s

-- name: put_off
-- The job could not be tried: again later.
UPDATE jobs
SET state = 'ready', lease_token = NULL, lease_until = NULL, attempts = attempts - 1,
    last_error = %(error)s, error_kind = %(error_kind)s, run_after = %(run_after)s
WHERE kind = %(kind)s AND subject = %(subject)s AND lease_token = %(token)s

-- name: release
-- Give a job back untried, because its worker stops.
UPDATE jobs
SET state = 'ready', lease_token = NULL, lease_until = NULL, attempts = attempts - 1
WHERE kind = %(kind)s AND subject = %(subject)s AND lease_token = %(token)s

-- name: take_back
-- Whoever runs the job has lost it, and it is to be done from the start: what it is about has changed.
UPDATE jobs
SET state = 'ready', lease_token = NULL, lease_until = NULL, attempts = attempts - 1
WHERE kind = %(kind)s AND subject = %(subject)s AND state = 'running'

-- name: about
-- The jobs of one subject.
SELECT kind, state, run_after, attempts, last_error, error_kind FROM jobs WHERE subject = %(subject)s ORDER BY kind

-- name: revive
-- Give dead jobs a new life.
WITH held AS (
    SELECT kind, subject FROM jobs WHERE state = 'dead' ORDER BY subject, kind FOR NO KEY UPDATE
)
UPDATE jobs j SET state = 'ready', attempts = 0, run_after = %(now)s
FROM held WHERE j.kind = held.kind AND j.subject = held.subject

-- name: resume_paused
-- Jobs that waited for tomorrow's money need not wait any more.
WITH held AS (
    SELECT kind, subject FROM jobs WHERE state = 'ready' AND error_kind IN ('SpendCapReached', 'PriceUnknown')
    ORDER BY subject, kind FOR NO KEY UPDATE
)
UPDATE jobs j SET run_after = %(now)s FROM held WHERE j.kind = held.kind AND j.subject = held.subject

-- name: notify
-- Wake the job runners.
SELECT pg_notify('esker_jobs', '')

-- name: forget_errors
-- Take out what jobs about these sessions failed with, which may quote what is forgotten.
WITH held AS (
    SELECT kind, subject FROM jobs WHERE session_id = ANY (%(sessions)s) AND last_error IS NOT NULL
    ORDER BY subject, kind FOR NO KEY UPDATE
)
UPDATE jobs j SET last_error = 'forgotten with what it was about'
FROM held WHERE j.kind = held.kind AND j.subject = held.subject
