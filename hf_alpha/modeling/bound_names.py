"""Names as they are spelled, which know their bindings."""


class BoundName(str):
    """A name as it is spelled, with the `key` of its binding."""

    key: str

    def __new__(cls, spelling: str, key: str) -> "BoundName":
        self = super().__new__(cls, spelling)
        self.key = key
        return self

    @classmethod
    def of(cls, spelling: str, key: str) -> str:
        """Make one; of a name without a binding, its spelling alone."""
        return spelling if key == spelling else cls(spelling, key)

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return str(self), self.key


class GluedName(BoundName):
    """A name that is glued to a word where its text marks it, which it is in answers too."""


def key_of(name: str) -> str:
    """Return the key of a name: its binding's, or its spelling."""
    return getattr(name, "key", name)
