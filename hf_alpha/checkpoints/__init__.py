"""What a folder of a model holds: where it lies, its files, links, code and patterns."""
