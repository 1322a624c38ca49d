"""Facts compared: when two are one, what may replace what, what is grounded in its sources."""
