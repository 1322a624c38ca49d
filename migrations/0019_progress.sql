-- A lease is renewed only while its job makes progress.

-- When the job was claimed, or last completed a part of its work.
ALTER TABLE jobs ADD COLUMN progress_at timestamptz;
