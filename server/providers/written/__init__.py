"""Facts that a language model wrote as text: in tags or as a list, in any dialect."""
