"""Models that are shared: released, described by a card, pushed."""
