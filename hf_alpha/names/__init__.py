"""Names that texts have: those that a user lists, and a first look at all of them."""
