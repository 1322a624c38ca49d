-- Forgotten words are looked for only where they may begin, so that a long one does not make every message slow.

-- Of each of the forgotten words: 32 bits of a keyed hash of its first term, then 16 bits with its number of terms.
ALTER TABLE forget_keys DROP COLUMN longest, ADD COLUMN starts bigint[] NOT NULL DEFAULT '{}';
