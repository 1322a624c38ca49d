"""A scripted model behind the four protocols that agent CLIs speak."""
