"""Logic, and what is drawn: its tasks, their solvers, and data of problems that are drawn."""
