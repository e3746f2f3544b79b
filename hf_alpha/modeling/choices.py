"""Checks of what configurations are given."""


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise a ValueError for a value that is none of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}; not {value!r}")


def check_unique(name: str, values: list[str]) -> None:
    """Raise a ValueError if two values are the same."""
    if len(set(values)) < len(values):
        raise ValueError(f"{name}: one is given twice: {values}")


__all__ = ["check_choice", "check_unique"]
