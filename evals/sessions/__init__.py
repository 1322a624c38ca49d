"""The suite `sessions`: what an observer keeps of real coding sessions, against labels that people wrote."""
