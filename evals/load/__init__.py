"""Load: many scripted agents against one server, with a spike and a large import, and what it costs."""
