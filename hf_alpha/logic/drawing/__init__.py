"""Data of drawn problems: datasets in folders, tests of heatmaps, rows drawn when needed."""
