-- name: request
-- Request a job now, up to a message; a dead job becomes ready again.
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
-- Schedule a job, unless one exists that is not dead; a dead one gets one more try.
WITH revived AS (
    UPDATE jobs SET state = 'ready', run_after = %(run_after)s
    WHERE kind = %(kind)s AND subject = %(subject)s AND state = 'dead'
)
INSERT INTO jobs (pool_id, kind, subject, run_after, created_at)
VALUES (current_pool(), %(kind)s, %(subject)s, %(run_after)s, %(now)s)
ON CONFLICT (pool_id, kind, subject) DO NOTHING

-- name: schedule
-- Schedule a job. One that was requested, runs, or failed keeps its own time (requesting and claiming both set
-- `up_to_seq`); a dead one gets one more try after its pause.
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
-- Schedule an observation of every session that has an unobserved tail and no job: now if the tail is long enough,
-- otherwise when the session counts as idle.
INSERT INTO jobs (pool_id, kind, subject, run_after, created_at)
SELECT current_pool(), 'observe', id,
       CASE WHEN unobserved_tokens >= %(tokens)s THEN %(now)s::timestamptz ELSE %(idle)s::timestamptz END, %(now)s
FROM sessions WHERE unobserved_tokens > 0 ORDER BY id
ON CONFLICT (pool_id, kind, subject) DO NOTHING

-- name: bury
-- Mark a job dead whose worker has died too often: it would kill the next worker, too.
UPDATE jobs
SET state = 'dead', lease_token = NULL, lease_until = NULL, error_kind = coalesce(error_kind, 'JobStuck'),
    last_error = coalesce(last_error, 'its worker died, ' || attempts || ' times')
WHERE state = 'running' AND lease_until <= %(now)s AND attempts >= %(most)s

-- name: claim
-- Claim one job that is due, or whose lease has expired. It covers the messages that the session has now.
WITH due AS (
    SELECT kind, subject FROM jobs
    WHERE state <> 'dead' AND run_after <= %(now)s AND (lease_until IS NULL OR lease_until <= %(now)s)
      AND kind = ANY (%(kinds)s)
    ORDER BY run_after
    LIMIT 1
    FOR UPDATE SKIP LOCKED
)
UPDATE jobs j
SET state = 'running', lease_token = %(token)s, lease_until = %(until)s, attempts = attempts + 1, progress_at = %(now)s,
    asked_again = false, up_to_seq = greatest(j.up_to_seq, (SELECT last_seq FROM sessions s WHERE s.id = j.subject))
FROM due
WHERE j.kind = due.kind AND j.subject = due.subject
RETURNING j.pool_id::text, j.kind, j.subject, j.lease_token::text AS token, j.attempts, j.lease_until AS until,
          j.options

-- name: renew
-- Renew the lease of a job that made progress since some time; returns whether it did, and no row if the lease was lost.
UPDATE jobs
SET lease_until = CASE WHEN progress_at > %(since)s THEN greatest(lease_until, %(until)s) ELSE lease_until END
WHERE kind = %(kind)s AND subject = %(subject)s AND lease_token = %(token)s
RETURNING progress_at > %(since)s

-- name: hold
-- Hold the lease while its holder writes; returns no row if it was lost.
UPDATE jobs SET lease_until = greatest(lease_until, %(until)s)
WHERE kind = %(kind)s AND subject = %(subject)s AND lease_token = %(token)s
RETURNING up_to_seq

-- name: attempts
-- How often the job was started since it last made progress.
SELECT attempts FROM jobs WHERE kind = %(kind)s AND subject = %(subject)s AND lease_token = %(token)s

-- name: progress
-- A part of the job is done, so earlier failures no longer count.
UPDATE jobs SET attempts = 1, last_error = NULL, error_kind = NULL, progress_at = %(now)s
WHERE kind = %(kind)s AND subject = %(subject)s AND lease_token = %(token)s

-- name: done
-- Delete a finished job, unless it was requested again while it ran.
DELETE FROM jobs
WHERE kind = %(kind)s AND subject = %(subject)s AND lease_token = %(token)s AND NOT asked_again
RETURNING kind

-- name: rest
-- End a run of a job; it waits for its next time, with the options of a request that came meanwhile.
UPDATE jobs
SET options = CASE WHEN asked_again THEN options ELSE '{}' END,
    state = 'ready', lease_token = NULL, lease_until = NULL, attempts = 0, up_to_seq = 0, asked_again = false,
    last_error = NULL, error_kind = NULL,
    run_after = CASE WHEN asked_again THEN coalesce(%(if_asked)s::timestamptz, %(run_after)s::timestamptz)
                     ELSE %(run_after)s END
WHERE kind = %(kind)s AND subject = %(subject)s AND lease_token = %(token)s
RETURNING kind

-- name: fail
-- The job failed: retry it later, or mark it dead, with its error.
UPDATE jobs
SET state = CASE WHEN %(dead)s THEN 'dead' ELSE 'ready' END, lease_token = NULL, lease_until = NULL,
    last_error = %(error)s, error_kind = %(error_kind)s, run_after = %(run_after)s
WHERE kind = %(kind)s AND subject = %(subject)s AND lease_token = %(token)s

-- name: put_off
-- The job could not be tried: retry it later without counting an attempt.
UPDATE jobs
SET state = 'ready', lease_token = NULL, lease_until = NULL, attempts = attempts - 1,
    last_error = %(error)s, error_kind = %(error_kind)s, run_after = %(run_after)s
WHERE kind = %(kind)s AND subject = %(subject)s AND lease_token = %(token)s

-- name: release
-- Release a job without counting an attempt, because its worker stops.
UPDATE jobs
SET state = 'ready', lease_token = NULL, lease_until = NULL, attempts = attempts - 1
WHERE kind = %(kind)s AND subject = %(subject)s AND lease_token = %(token)s

-- name: take_back
-- Take a running job from its worker, so that it starts again: its input has changed.
UPDATE jobs
SET state = 'ready', lease_token = NULL, lease_until = NULL, attempts = attempts - 1
WHERE kind = %(kind)s AND subject = %(subject)s AND state = 'running'

-- name: about
-- The jobs of one subject.
SELECT kind, state, run_after, attempts, last_error, error_kind FROM jobs WHERE subject = %(subject)s ORDER BY kind

-- name: listed
-- The jobs in some states, the longest waiting first.
SELECT kind, subject, state, run_after, attempts, last_error, error_kind, up_to_seq, lease_until, progress_at, created_at
FROM jobs WHERE state = ANY (%(states)s) ORDER BY run_after, subject, kind

-- name: retry
-- Have a job run now, as if it had never failed, unless it runs.
UPDATE jobs SET state = 'ready', attempts = 0, run_after = %(now)s, last_error = NULL, error_kind = NULL
WHERE kind = %(kind)s AND subject = %(subject)s AND state <> 'running'

-- name: drop
-- Delete a job; a worker that has it loses its lease.
DELETE FROM jobs WHERE kind = %(kind)s AND subject = %(subject)s

-- name: revive
-- Make dead jobs ready again.
WITH held AS (
    SELECT kind, subject FROM jobs WHERE state = 'dead' ORDER BY subject, kind FOR NO KEY UPDATE
)
UPDATE jobs j SET state = 'ready', attempts = 0, run_after = %(now)s
FROM held WHERE j.kind = held.kind AND j.subject = held.subject

-- name: resume_paused
-- Let jobs run now that waited because the daily cap was reached.
WITH held AS (
    SELECT kind, subject FROM jobs WHERE state = 'ready' AND error_kind IN ('SpendCapReached', 'PriceUnknown')
    ORDER BY subject, kind FOR NO KEY UPDATE
)
UPDATE jobs j SET run_after = %(now)s FROM held WHERE j.kind = held.kind AND j.subject = held.subject

-- name: bring_forward
-- Schedule anew what was scheduled before the clock was set back: jobs that were created at a time that has not come yet.
-- Each keeps its pause.
WITH held AS (
    SELECT kind, subject FROM jobs WHERE state = 'ready' AND created_at > %(now)s
    ORDER BY subject, kind FOR NO KEY UPDATE
)
UPDATE jobs j SET run_after = %(now)s + greatest(j.run_after - j.created_at, interval '0'), created_at = %(now)s
FROM held WHERE j.kind = held.kind AND j.subject = held.subject

-- name: notify
-- Wake the job runners.
SELECT pg_notify('esker_jobs', '')

-- name: forget_errors
-- Delete the errors of jobs for these sessions, which may quote forgotten text.
WITH held AS (
    SELECT kind, subject FROM jobs WHERE session_id = ANY (%(sessions)s) AND last_error IS NOT NULL
    ORDER BY subject, kind FOR NO KEY UPDATE
)
UPDATE jobs j SET last_error = 'forgotten with what it was about'
FROM held WHERE j.kind = held.kind AND j.subject = held.subject

-- name: pool_backlog
-- How much work waits in this pool, and how well its transcripts are covered.
WITH covered AS (
    SELECT s.last_seq, s.observed_seq, coalesce(sum(g.last_seq - g.first_seq + 1), 0) AS messages
    FROM sessions s
    LEFT JOIN observation_groups g ON g.pool_id = s.pool_id AND g.session_id = s.id
    WHERE s.pool_id = current_pool() AND s.last_seq > 0
    GROUP BY s.pool_id, s.id
)
SELECT (SELECT coalesce(sum(s.unobserved_tokens), 0) FROM sessions s
        WHERE s.pool_id = current_pool() AND s.unobserved_tokens > 0) AS unobserved_tokens,
       (SELECT coalesce(max(extract(epoch FROM %(now)s - m.received_at)), 0)
        FROM sessions s
        JOIN messages m ON m.pool_id = s.pool_id AND m.session_id = s.id AND m.seq = s.observed_seq + 1
        WHERE s.pool_id = current_pool() AND s.unobserved_tokens > 0) AS oldest_unobserved_seconds,
       (SELECT count(*) FROM jobs WHERE pool_id = current_pool() AND state <> 'dead') AS jobs_waiting,
       (SELECT count(*) FROM jobs WHERE pool_id = current_pool() AND state = 'dead') AS jobs_dead,
       (SELECT count(*) FROM embedding_attempts WHERE pool_id = current_pool() AND NOT dead) AS embeddings_waiting,
       (SELECT count(*) FROM embedding_attempts WHERE pool_id = current_pool() AND dead) AS embeddings_dead,
       (SELECT coalesce(min(p.agreement), 1) FROM vector_probes p
        JOIN embedding_spaces e ON e.pool_id = p.pool_id AND e.name = p.space AND e.state = 'active'
        WHERE p.pool_id = current_pool() AND to_regclass(vector_index(p.pool_id, p.space, p.tier)) IS NOT NULL
       ) AS lowest_index_agreement,
       coalesce(sum(last_seq), 0) AS messages, coalesce(sum(c.messages), 0) AS covered_messages,
       coalesce(sum(observed_seq - c.messages), 0) AS lost_messages,
       coalesce(min(c.messages::float8 / last_seq), 1) AS lowest_coverage
FROM covered c
