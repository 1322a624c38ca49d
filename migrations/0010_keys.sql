-- Keys: scopes of their own for forgetting and for the operator, their last use, and what is fixed by grant.

-- A key that could write could also forget, and still can.
ALTER TABLE api_keys DROP CONSTRAINT api_keys_scopes_check;
UPDATE api_keys SET scopes = scopes || 'forget'::text WHERE 'write' = ANY (scopes);
ALTER TABLE api_keys
    ADD CONSTRAINT api_keys_scopes_check
        CHECK (scopes <@ ARRAY['read', 'write', 'forget', 'admin'] AND cardinality(scopes) > 0),
    -- The day (UTC) of its last use; a time would cost a write for each request.
    ADD COLUMN last_used_on date;

-- The first key of a pool closes the server; the app role can neither do that by itself nor undo it.
CREATE FUNCTION require_keys() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
    AS $$
BEGIN
    UPDATE pools SET keys_required = true WHERE id = NEW.pool_id AND NOT keys_required;
    RETURN NULL;
END
$$;
REVOKE EXECUTE ON FUNCTION require_keys FROM PUBLIC;
CREATE TRIGGER require_keys AFTER INSERT ON api_keys FOR EACH ROW EXECUTE FUNCTION require_keys();
REVOKE UPDATE (keys_required) ON pools FROM esker_app;
REVOKE INSERT ON pools FROM esker_app;
GRANT INSERT (name) ON pools TO esker_app;

-- A key keeps its hash, its scopes and its end; a revoked one stays revoked and stays in the list.
REVOKE UPDATE, DELETE ON api_keys FROM esker_app;
GRANT UPDATE (revoked_at, last_used_on) ON api_keys TO esker_app;
CREATE FUNCTION keep_revoked() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a revoked key stays revoked' USING ERRCODE = 'integrity_constraint_violation';
END
$$;
CREATE TRIGGER keep_revoked BEFORE UPDATE OF revoked_at ON api_keys
    FOR EACH ROW WHEN (OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at)
    EXECUTE FUNCTION keep_revoked();

-- An entry of the audit trail cannot be changed.
REVOKE UPDATE, DELETE ON audit FROM esker_app;

DROP FUNCTION find_api_key(bytea, timestamptz);
CREATE FUNCTION find_api_key(hash bytea, moment timestamptz)
    RETURNS TABLE (pool_id uuid, pool_name text, key_id text, scopes text[], last_used_on date)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
    AS $$
        SELECT k.pool_id, p.name, k.id, k.scopes, k.last_used_on
        FROM api_keys k JOIN pools p ON p.id = k.pool_id
        WHERE k.key_hash = hash AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > moment)
    $$;
REVOKE EXECUTE ON FUNCTION find_api_key FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_api_key TO esker_app;
