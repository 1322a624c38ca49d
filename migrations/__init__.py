"""The schema: numbered SQL files, applied in order and never changed afterwards."""
