-- A recall may ask a language model for other wordings of its question, and what that costs is counted like the rest.

ALTER TABLE spend DROP CONSTRAINT spend_purpose_check;
ALTER TABLE spend ADD CONSTRAINT spend_purpose_check CHECK (purpose IN ('observe', 'reflect', 'recall'));
