"""What becomes of histories: many sittings of one project, in other people's data."""
