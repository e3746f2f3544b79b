"""Reading and writing: folders, JSON, YAML, settings, and what is shown in a terminal."""
