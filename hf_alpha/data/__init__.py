"""Data: generating it, reading it, and batching it."""
