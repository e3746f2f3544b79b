"""Everything that travels to the Hub: flat, and without any import from the rest of the package."""
